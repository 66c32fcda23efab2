"""Makes greedy_*.jsonl; README.md says how and what they hold."""

import argparse
import json
import os

import numpy as np

import corpus
import float_model
import llama_c
from make_logits import CHATML, HERE

LENGTH = 64


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--models", required=True, help="folder of the GGUF files")
    args.add_argument("--llama", required=True, help="folder of libllama's shared objects")
    args.add_argument("--threads", type=int, default=1)
    args = args.parse_args()
    library = llama_c.Library(args.llama)
    for name in float_model.FILES:
        llama = llama_c.Model(library, os.path.join(args.models, float_model.FILES[name]))
        ours = float_model.FloatModel(args.models, name, args.threads)
        context = llama_c.Context(llama, 1024, args.threads)
        texts = [(p, False) for p in corpus.PROMPTS]
        if name == "smollm2":
            texts += [(CHATML.format(c), True) for c in corpus.CHATS]
        parted = 0
        with open(os.path.join(HERE, f"greedy_{name}.jsonl"), "w", encoding="utf-8", newline="\n") as out:
            for text, special in texts:
                prompt = llama.tokenize(text, special, add_bos=True)
                context.clear()
                tokens = [int(context.decode(prompt).argmax())]
                while len(tokens) < LENGTH:
                    tokens.append(int(context.decode(tokens[-1:]).argmax()))
                logits = ours.logits(prompt + tokens[:-1], range(len(prompt) - 1, len(prompt) + LENGTH - 1))
                best = np.argsort(-logits, axis=1, kind="stable")[:, :2]
                gap = [round(float(row[a] - row[b]), 4) for row, (a, b) in zip(logits, best)]
                parted += sum(int(a != t) for (a, _), t in zip(best, tokens))
                out.write(json.dumps({"text": text, "prompt": prompt, "tokens": tokens, "f32_first": best[:, 0].tolist(),
                                      "f32_second": best[:, 1].tolist(), "f32_gap": gap}, ensure_ascii=False, separators=(",", ":")) + "\n")
        print(name, len(texts), "prompts; steps at which float32 would have chosen otherwise:", parted, flush=True)


if __name__ == "__main__":
    main()
