"""Makes sampling.jsonl: the distributions that sampling parameters make of random logits.

Every step is transformers' own processor, in float64, but for presence and frequency penalties, which transformers lacks
(logit -= presence * (count > 0) + frequency * count over the output), in the order: repetition (prompt and output),
presence and frequency, logit bias, minimum length, temperature, top_k, top_p, min_p. Cases in which a cut-off lies so
near a token that float32 could decide otherwise are drawn again.
"""

import json
import os
import random

import torch
from transformers.generation import logits_process as lp

VOCAB = 48
STOP_IDS = [2, 7, 40]


def draw(rng):
    """logits, prompt, output, parameters (only those that are set)."""
    spread = rng.choice([0.5, 2, 5, 10])
    logits = [round(rng.gauss(0, spread), 3) for _ in range(VOCAB)]
    if rng.random() < 0.15:  # ties
        logits = [float(round(x)) for x in logits]
    prompt = [rng.randrange(VOCAB) for _ in range(rng.randrange(0, 12))]
    output = [rng.randrange(VOCAB) for _ in range(rng.randrange(0, 12))] + [rng.choice(STOP_IDS)] * rng.randrange(3)
    values = {
        "repetition_penalty": lambda: round(rng.choice([rng.uniform(0.5, 1), rng.uniform(1, 2), 10.0]), 3),
        "presence_penalty": lambda: round(rng.uniform(-2, 2), 3),
        "frequency_penalty": lambda: round(rng.uniform(-2, 2), 3),
        "logit_bias": lambda: [[i, round(rng.choice([rng.uniform(-5, 5), 100.0, -100.0]), 3)] for i in rng.sample(range(VOCAB), rng.randrange(1, 5))],
        "min_tokens": lambda: rng.choice([1, 4, 8, 30]),
        "temperature": lambda: round(rng.choice([rng.uniform(0.05, 1), rng.uniform(1, 3), 50.0]), 3),
        "top_k": lambda: rng.choice([1, 2, 3, 5, 10, 40, VOCAB, 1000]),
        "top_p": lambda: round(rng.choice([rng.uniform(0.01, 0.5), rng.uniform(0.5, 0.999)]), 4),
        "min_p": lambda: round(rng.choice([rng.uniform(0.001, 0.1), rng.uniform(0.1, 0.99), 1.0]), 4),
    }
    names = list(values)
    chosen = [rng.choice(names)] if rng.random() < 0.35 else [n for n in names if rng.random() < rng.choice([0.3, 0.6])]
    return logits, prompt, output, {n: values[n]() for n in names if n in chosen}


def near(scores, params):
    """Whether a float32 rounding could move the cut of top_p or min_p."""
    probs = scores.softmax(-1)[0]
    if "top_p" in params:
        ordered = probs.sort().values
        kept = ordered.cumsum(-1)
        cut = int((kept <= 1 - params["top_p"]).sum())
        tied = 0 < cut < VOCAB and ordered[cut - 1] > 0 and ordered[cut] - ordered[cut - 1] < 1e-9
        if tied or (kept - (1 - params["top_p"])).abs().min() < 1e-5:
            return True
    ratio = probs / probs.max()
    return "min_p" in params and bool(((ratio - params["min_p"]).abs() < 1e-5 * params["min_p"]).logical_and(ratio < 1).any())


def distribution(logits, prompt, output, params):
    """The probabilities, or None when a cut is too near."""
    ids = torch.tensor([prompt + output], dtype=torch.long)
    scores = torch.tensor([logits], dtype=torch.float64)
    if "repetition_penalty" in params:
        scores = lp.RepetitionPenaltyLogitsProcessor(params["repetition_penalty"])(ids, scores)
    count = torch.bincount(torch.tensor(output, dtype=torch.long), minlength=VOCAB).to(torch.float64)
    scores = scores - params.get("presence_penalty", 0) * (count > 0) - params.get("frequency_penalty", 0) * count
    if "logit_bias" in params:
        scores = lp.SequenceBiasLogitsProcessor([[[i], b] for i, b in params["logit_bias"]])(ids, scores)
    if "min_tokens" in params:
        scores = lp.MinNewTokensLengthLogitsProcessor(len(prompt), params["min_tokens"], STOP_IDS)(ids, scores)
    if "temperature" in params:
        scores = lp.TemperatureLogitsWarper(params["temperature"])(ids, scores)
    if "top_k" in params:
        kth = scores[0].topk(min(params["top_k"], VOCAB)).values[-1]
        if bool(((scores[0] - kth).abs() < 1e-5 * kth.abs()).logical_and(scores[0] != kth).any()):
            return None
        scores = lp.TopKLogitsWarper(params["top_k"])(ids, scores)
    if near(scores, params):
        return None
    if "top_p" in params:
        scores = lp.TopPLogitsWarper(params["top_p"])(ids, scores)
    if "min_p" in params:
        scores = lp.MinPLogitsWarper(params["min_p"])(ids, scores)
    return scores.softmax(-1)[0].tolist()


def main():
    rng = random.Random(5)
    here = os.path.dirname(os.path.abspath(__file__))
    cases = 0
    with open(os.path.join(here, "sampling.jsonl"), "w", newline="\n") as out:
        while cases < 300:
            logits, prompt, output, params = draw(rng)
            probs = distribution(logits, prompt, output, params)
            if probs is None:
                continue
            case = {"logits": logits, "prompt": prompt, "output": output, "stop_ids": STOP_IDS, **params,
                    "probs": [float(f"{p:.8g}") for p in probs]}
            out.write(json.dumps(case, separators=(",", ":")) + "\n")
            cases += 1


if __name__ == "__main__":
    main()
