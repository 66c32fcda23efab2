"""Makes logits_*.bin, forced_*.bin and forced_peer.json; README.md says how and what they hold."""

import argparse
import json
import os
import struct

import numpy as np

import corpus
import float_model
import llama_c

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = 64
CHATML = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
          "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n")


def log_sum_exp(row):
    row = row.astype(np.float64)
    top = row.max()
    return top + np.log(np.exp(row - top).sum())


def top_bytes(row):
    """logsumexp, then the TOP greatest logits: their ids and values, descending, lower ids first among equals."""
    order = np.lexsort((np.arange(row.size), -row))[:TOP].astype("<u4")
    return struct.pack("<f", log_sum_exp(row)) + order.tobytes() + row[order].astype("<f4").tobytes()


def write_logits(path, model, prompts, strides):
    """prompts: (token ids, {row: whether every logit is stored})."""
    with open(path, "wb") as out:
        out.write(struct.pack("<4sII", b"BGLG", TOP, len(prompts)))
        for tokens, rows in prompts:
            values = model.logits(tokens, rows)
            out.write(struct.pack("<I", len(tokens)) + np.array(tokens, "<u4").tobytes() + struct.pack("<I", len(rows)))
            for (row, whole), logits in zip(rows.items(), values):
                kept = logits[::strides[whole]].astype("<f4")
                out.write(struct.pack("<III", row, strides[whole], kept.size) + top_bytes(logits) + kept.tobytes())


def write_forced(path, tokens, logits):
    with open(path, "wb") as out:
        out.write(struct.pack("<4sII", b"BGTF", TOP, len(tokens)) + np.array(tokens, "<u4").tobytes())
        for row in logits:
            out.write(top_bytes(row))


def log_softmax(logits):
    return logits.astype(np.float64) - np.array([log_sum_exp(r) for r in logits])[:, None]


def bucketed_kl(reference, other):
    """KL(reference || other) per row in nats over the reference's TOP tokens and one bucket for all others."""
    p, q = log_softmax(reference), log_softmax(other)
    rows = np.arange(len(p))[:, None]
    top = np.argsort(-p, axis=1)[:, :TOP]
    pt, qt = p[rows, top], q[rows, top]
    rest_p, rest_q = (np.maximum(1 - np.exp(x).sum(1), 1e-12) for x in (pt, qt))
    return (np.exp(pt) * (pt - qt)).sum(1) + rest_p * np.log(rest_p / rest_q)


def compare(reference, other):
    p, q = log_softmax(reference), log_softmax(other)
    whole = (np.exp(p) * (p - q)).sum(1)
    kl = bucketed_kl(reference, other)
    return {
        "tokens": len(reference),
        "argmax_agreement": round(float((reference.argmax(1) == other.argmax(1)).mean()), 5),
        "kl_mean": round(float(kl.mean()), 6),
        "kl_p99": round(float(np.quantile(kl, 0.99)), 6),
        "kl_max": round(float(kl.max()), 6),
        "whole_vocabulary_kl_mean": round(float(whole.mean()), 6),
    }


def transformers_difference(models, name, tokens, ours):
    import torch
    import transformers
    peer = transformers.AutoModelForCausalLM.from_pretrained(
        models, gguf_file=float_model.FILES[name], dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        theirs = peer(torch.tensor([tokens])).logits[0].numpy()
    return float(np.abs(theirs[list(ours)] - np.stack(list(ours.values()))).max())


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--models", required=True, help="folder of the GGUF files")
    args.add_argument("--llama", required=True, help="folder of libllama's shared objects")
    args.add_argument("--threads", type=int, default=1)
    args.add_argument("--transformers", action="store_true", help="also compare with transformers")
    args = args.parse_args()
    library = llama_c.Library(args.llama)
    peers = {"llama_cpp": library.version}
    for name, forced_tokens in (("smollm2", 1500), ("gemma3", 400)):
        path = os.path.join(args.models, float_model.FILES[name])
        llama, ours = llama_c.Model(library, path), float_model.FloatModel(args.models, name, args.threads)
        encode = lambda text, special=False: llama.tokenize(text, special, add_bos=True)
        passage = encode(corpus.PASSAGE)
        code = encode(corpus.CODE[0] + corpus.CODE[1])
        last = lambda tokens, *more: (tokens, {**{row: False for row in more}, len(tokens) - 1: True})
        if name == "smollm2":
            prompts = [last(encode("Hello")), last(encode(corpus.PROMPTS[0]), 0, 2), last(encode(CHATML.format(corpus.CHATS[0]), True), 20),
                       last(code, 15, 16, 100), last(passage[:200], 63, 64, 127)]
            strides = {True: 1, False: 16}
        else:
            prompts = [last(encode("")), last(encode(corpus.PROMPTS[0]), 1, 3), last(code, 15, 16),
                       last(passage[:200], 127), last(passage[:650], 510, 511, 512, 513, 600)]
            strides = {True: 16, False: 64}
        write_logits(os.path.join(HERE, f"logits_{name}.bin"), ours, prompts, strides)
        tokens = passage[:forced_tokens]
        assert len(tokens) == forced_tokens, len(tokens)
        reference = ours.logits(tokens, range(len(tokens)))
        write_forced(os.path.join(HERE, f"forced_{name}.bin"), tokens, reference)
        peers[name] = compare(reference, llama_c.Context(llama, 2048, args.threads).decode(tokens, every=True))
        print(name, [len(t) for t, _ in prompts], peers[name], flush=True)
        if args.transformers:
            tokens, rows = prompts[-1]
            ours_rows = dict(zip(rows, ours.logits(tokens, rows)))
            print(name, "greatest difference to transformers:", transformers_difference(args.models, name, tokens, ours_rows))
    with open(os.path.join(HERE, "forced_peer.json"), "w") as out:
        json.dump(peers, out, indent=2)
        out.write("\n")


if __name__ == "__main__":
    main()
