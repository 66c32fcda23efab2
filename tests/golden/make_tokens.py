"""Makes tokens_smollm2.jsonl and tokens_gemma3.jsonl; README.md says how and what they hold."""

import argparse
import json
import os
import random
import sys
import unicodedata

import gguf
import tokenizers

import corpus
import llama_c

SPACES = [" ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u00a0", "\u1680", "\u2000", "\u2003", "\u2009", "\u200a",
          "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u180e", "\u00ad", "\u200e", "\u0000", "\u0001", "\u001b",
             "\u001c", "\u001f", "\u007f"]
EMOJI = ["\U0001F600", "\U0001F44D\U0001F3FD", "\U0001F468\u200d\U0001F469\u200d\U0001F467\u200d\U0001F466",
         "\U0001F3F3\ufe0f\u200d\U0001F308", "\U0001F1E9\U0001F1EA", "\U0001F1FA\U0001F1F8", "1\ufe0f\u20e3", "\u2764\ufe0f",
         "\U0001F9D1\U0001F3FF\u200d\U0001F680", "\U0001F575\ufe0f\u200d\u2640\ufe0f", "\u263a", "\U0001FAE0",
         "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", "\U0001F441\ufe0f\u200d\U0001F5E8\ufe0f"]
MARKS = ["\u0301", "\u0308", "\u0327", "\u0338", "\u20dd", "\u0489", "\u05b0", "\u064b", "\u093c", "\u3099", "\u0e49", "\u1dc4"]
NUMBERS = ["0", "7", "42", "123", "1234567890", "3.14159", "1,000,000", "0xFF", "1e10", "-5", "\u0663\u0664", "\u0967\u0968",
           "\uff11\uff12", "\u00b2\u00b3", "\u00bd", "\u2167", "\u3007", "\u2460", "\u0e51", "\U0001D7D9", "\u5341", "\u0bf0"]
APOSTROPHES = ["'", "\u2019", "\u02bc", "\uff07", "`"]
SUFFIXES = ["s", "t", "re", "ve", "m", "ll", "d", "S", "T", "RE", "VE", "M", "LL", "D", "Ll", "rE", "\u017f", "x", "em", "sm", "tt", "ll've"]
WORDS = ["I", "we", "can", "don", "it", "They", "HE", "rock", "o", "x", "\u00e9t\u00e9", "\u5b57", "9", "_", "", " you", "end", "hello", "World", "PascalCase",
         "snake_case", "camelCase", "a", "supercalifragilisticexpialidocious", "na\u00efve", "\u0440\u0443\u043a\u0430"]
PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u2026\u2014\u201c\u201d\u00ab\u00bb\u3002\u3001\uff01\u00bf\u00a1\u2022\u2192"
# The first letters of blocks that were whole long before Unicode 14.
BLOCKS = [(0x20, 0x7f), (0xa0, 0x180), (0x180, 0x250), (0x250, 0x370), (0x370, 0x400), (0x400, 0x530), (0x530, 0x590), (0x590, 0x600),
          (0x600, 0x700), (0x900, 0xa00), (0xe00, 0xe80), (0x10a0, 0x1100), (0x1100, 0x1200), (0x1e00, 0x2000), (0x2000, 0x2070),
          (0x2070, 0x2100), (0x2100, 0x2400), (0x2460, 0x2600), (0x2600, 0x2800), (0x3040, 0x3100), (0x4e00, 0x9fa0), (0xac00, 0xd7a0),
          (0xf900, 0xfb00), (0xff00, 0xfff0), (0x10000, 0x10080), (0x1d400, 0x1d800), (0x1f300, 0x1f650), (0x20000, 0x2a000)]
RUNS = ["a", " ", "\n", "\t", "=", "-", "ab", "aaaa ", "0", "9", "\u00e9", "\u5b57", "\U0001F600", " \n", "\r\n", ".", "'s", "xyz ", "\u00a0", "\u0301", "the ", "(", "#", "\u2581"]


def pieces(rng, *pools):
    return rng.choice(rng.choice(pools))


def cut(rng, text, most):
    start = rng.randrange(len(text))
    return text[start:start + rng.randrange(1, most)]


def code_point(rng):
    while True:
        c = chr(rng.randrange(*rng.choice(BLOCKS)))
        if unicodedata.category(c) not in ("Cn", "Cs"):
            return c


def any_scalar(rng):
    """Any scalar value but those that a later Unicode version may make a letter; planes 4 to 13 hold none."""
    while True:
        c = rng.choice([rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0x10000), rng.randrange(0x110000)])
        category = unicodedata.category(chr(c))
        if category != "Cs" and (category != "Cn" or 0x40000 <= c < 0xe0000):
            return chr(c)


def generated(rng, control):
    """One difficult string of a kind drawn at random, and whether control tokens may be spelled in it."""
    kind = rng.randrange(14)
    special = False
    if kind == 0:
        text = cut(rng, rng.choice(corpus.SENTENCES), 60)
    elif kind == 1:
        text = cut(rng, rng.choice(corpus.CODE), 100)
    elif kind == 2:
        text = "".join(code_point(rng) for _ in range(rng.randrange(1, 16)))
    elif kind == 3:
        text = "".join(pieces(rng, SPACES, WORDS, PUNCTUATION, SPACES) for _ in range(rng.randrange(1, 16)))
    elif kind == 4:
        text = "".join(pieces(rng, NUMBERS, NUMBERS, PUNCTUATION, SPACES) for _ in range(rng.randrange(1, 8)))
    elif kind == 5:
        text = "".join(rng.choice(WORDS) + rng.choice(APOSTROPHES) + rng.choice(SUFFIXES) + rng.choice(["", " ", "\n", "."])
                       for _ in range(rng.randrange(1, 5)))
    elif kind == 6:
        text = "".join(pieces(rng, EMOJI, EMOJI, WORDS, [" ", "\u200d", "\ufe0f"]) for _ in range(rng.randrange(1, 6)))
    elif kind == 7:
        text = "".join(code_point(rng) + "".join(rng.choice(MARKS) for _ in range(rng.randrange(3)))
                       for _ in range(rng.randrange(1, 8)))
    elif kind == 8:
        text = "".join(any_scalar(rng) for _ in range(rng.randrange(1, 10)))
    elif kind == 9:
        text = "".join(rng.choice(PUNCTUATION) for _ in range(rng.randrange(1, 16)))
    elif kind == 10:
        space = rng.choice(SPACES)
        text = rng.choice(WORDS) + space * rng.randrange(1, 40) + rng.choice(["", rng.choice(WORDS), rng.choice(SPACES) + "z"])
    elif kind == 11:
        text = "".join(pieces(rng, INVISIBLE, WORDS, SPACES) for _ in range(rng.randrange(1, 8)))
    elif kind == 12:
        text = "".join(pieces(rng, WORDS, SPACES, NUMBERS, EMOJI, [rng.choice(corpus.SENTENCES)[:20]], PUNCTUATION, MARKS)
                       for _ in range(rng.randrange(2, 14)))
    else:
        special = rng.random() < 0.5
        names = [rng.choice(control) for _ in range(rng.randrange(1, 4))]
        broken = [n[:rng.randrange(1, len(n))] if rng.random() < 0.2 else n for n in names]
        text = "".join(pieces(rng, WORDS, SPACES, [""], PUNCTUATION) + n for n in broken) + pieces(rng, WORDS, SPACES, [""])
    return text, special


def strings(control, count, seed):
    rng = random.Random(seed)
    out = [("", False), (" ", False), ("\n", False), ("  ", False), ("\u0000", False), ("\ufeff", False), ("\u2581", False),
           (" \u2581 \u2581\u2581", False)]
    out += [(t, False) for t in corpus.SENTENCES + corpus.CODE + corpus.PROMPTS + corpus.PASSAGE.split("\n\n")[:12]]
    out += [(unit * n, False) for unit in RUNS for n in (2, 3, 5, 17, 64, 200)]
    out += [(unit * 1500, False) for unit in RUNS[:6]]
    out += [(name, special) for name in control[:40] for special in (False, True)]
    out += [(f"{a}{name}{b}", special) for name in control[:8] for a in ("", " ", "x", "\n") for b in ("", " ", "x", "\n")
            for special in (False, True)]
    out += [(f"{control[0]}{control[1]}user\nHi{control[2]}\n", special) for special in (False, True)]
    seen = set(out)
    while len(out) < count:
        item = generated(rng, control)
        if item not in seen:
            seen.add(item)
            out.append(item)
    return list(dict.fromkeys(out))


def field(reader, name):
    return reader.fields[name].contents()


def byte_level(reader, control, special):
    """HF's byte-level BPE with SmolLM2's pre-tokenizer over the file's vocabulary and merges."""
    vocab = {t: i for i, t in enumerate(field(reader, "tokenizer.ggml.tokens"))}
    merges = [tuple(m.split(" ")) for m in field(reader, "tokenizer.ggml.merges")]
    out = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
    out.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([
        tokenizers.pre_tokenizers.Digits(individual_digits=True),
        tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    if special:
        out.add_special_tokens(control)
    return out


def gemma(path, user_defined, special):
    """HF's own Gemma 3 tokenizer; without control tokens only the user-defined ones are split off."""
    with open(path) as f:
        config = json.load(f)
    if not special:
        config["added_tokens"] = [t for t in config["added_tokens"] if t["content"] in user_defined]
    config["post_processor"] = None
    return tokenizers.Tokenizer.from_str(json.dumps(config))


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--models", required=True, help="folder of the GGUF files")
    args.add_argument("--llama", required=True, help="folder of libllama's shared objects")
    args.add_argument("--gemma_tokenizer", required=True, help="tokenizer.json of Gemma 3")
    args.add_argument("--count", type=int, default=5200)
    args = args.parse_args()
    library = llama_c.Library(args.llama)
    here = os.path.dirname(os.path.abspath(__file__))
    for name, file, seed in (("smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", 1), ("gemma3", "gemma-3-270m.Q4_K_M.gguf", 2)):
        path = os.path.join(args.models, file)
        reader = gguf.GGUFReader(path)
        types = field(reader, "tokenizer.ggml.token_type")
        tokens = field(reader, "tokenizer.ggml.tokens")
        control = [t for t, k in zip(tokens, types) if k == 3]
        user_defined = {t for t, k in zip(tokens, types) if k == 4}
        if name == "gemma3":
            control = [t for t in control if not t.startswith("<unused")] + ["<unused0>", "<unused99>", "<start_of_turn>"]
            control = list(dict.fromkeys(control))
        model = llama_c.Model(library, path, vocab_only=True)
        hf = {s: byte_level(reader, control, s) if name == "smollm2" else gemma(args.gemma_tokenizer, user_defined, s)
              for s in (False, True)}
        differing = []
        with open(os.path.join(here, f"tokens_{name}.jsonl"), "w", encoding="utf-8", newline="\n") as out:
            items = strings(control, args.count, seed)
            for text, special in items:
                ids = model.tokenize(text, special)
                other = hf[special].encode(text, add_special_tokens=False).ids
                if ids != other:
                    differing.append((text, special, ids, other))
                    continue
                out.write(json.dumps({"text": text, "special": special, "ids": ids}, ensure_ascii=False, separators=(",", ":")) + "\n")
        print(name, len(items), "strings; left out, since the oracles differ:", len(differing))
        for text, special, ids, other in differing:
            print(ascii(text[:80]), special, ids[:20], other[:20], file=sys.stderr)


if __name__ == "__main__":
    main()
