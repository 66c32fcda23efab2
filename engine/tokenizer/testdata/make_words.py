"""Makes words.jsonl: texts, and for each pre-tokenizer the length in bytes of every word it cuts them into.

    pip install regex tokenizers && python3 make_words.py

The patterns are the ones that the models publish in their tokenizer.json (for "default": the four that llama.cpp applies
one after the other). Two engines run them, Python's `regex` and the Oniguruma inside of `tokenizers`; a text on which
they differ (they know different versions of Unicode) is left out.
"""

import json
import os
import unicodedata

import regex
import tokenizers

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
PATTERNS = {
    "gpt-2": [GPT2],
    "smollm": [r"\p{N}", GPT2],
    "llama-bpe": [LLAMA3],
    "qwen2": [LLAMA3.replace("{1,3}", "")],
    "default": [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"],
}

# Ends of runs, contractions in every shape, line ends of every kind, digits of every script, signs beside all of them.
HAND_WRITTEN = [
    "'s", "'S", "it's", "IT'S", "it''s", "'re've'll'd'm't", "'RE'Ve'lL", "'\u017fa", "x'\u017f", " 's", "''", "'", "'x", "a'", "'l", "'r ", "'ll'l",
    " ", "  ", "   a", "\n", "\n\n", "a\n", "a\n\nb", "a \n b", " \n", "\n ", "\r\n", "\r", "a\r\n\r\nb", "a\t\tb", "\ta", " \t a", "\u00a0a",
    "a\u3000b", "\u3000\u3000x", "\u0085\u2028", "a\u200bb", "\ufeffa", "\x00\x01", "\x1c\x1da",
    "1", "12", "123", "1234", "1234567", " 12", "a1b22c333d4444", "\u0663\u0664\u0665\u0666", "\u00bd\u00b2", "\u2167\u3007", "1.5", "1,000,000", "0x1F", "3rd",
    "!", "!!!", "a!b", " !", "!\n", "!?\r\n\r\n", "...\n\n\nx", " ...", "\n!", "$5", "a=b", "a==b", "<|x|>", "x^2~y", "`code`", "(a)", "[1]",
    "\u4f60\u597d\u3002", "\u0434\u0430, \u043d\u0435\u0442", "e\u0301a", "\u0301\u0301", " \u0301", "\u0e33\u0e35", "\U0001F600\U0001F600", "a\U0001F600b", " \U0001F600", "\u200d\ufe0f",
    "\U0001D7D9\U0001D7DA", "\U0001D400b", "\u2460\u24b6", "\u02b0\u02c6", "\u00aa\u00ba", "\u16ee", "\u0483a", "\u203fa_b", "Hello, world! It's 2024.\n\n  Done.",
]


def by_regex(patterns, text):
    pieces = [text]
    for pattern in patterns:
        cut = []
        for piece in pieces:
            at = 0
            for match in regex.finditer(pattern, piece):
                cut += [piece[at:match.start()], match.group()]
                at = match.end()
            cut.append(piece[at:])
        pieces = [p for p in cut if p]
    return pieces


def by_tokenizers(patterns, text):
    split = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(tokenizers.Regex(p), "isolated") for p in patterns])
    return [piece for piece, _ in split.pre_tokenize_str(text)]


def texts():
    golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tests/golden/tokens_smollm2.jsonl")
    with open(golden, encoding="utf-8") as f:
        corpus = [json.loads(line)["text"] for line in f]
    assigned = [t for t in corpus if len(t) < 120 and not any(unicodedata.category(c) == "Cn" for c in t)]
    return HAND_WRITTEN + assigned[::6]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    left_out = 0
    with open(os.path.join(here, "words.jsonl"), "w", encoding="utf-8", newline="\n") as out:
        for text in dict.fromkeys(texts()):
            words = {name: by_regex(patterns, text) for name, patterns in PATTERNS.items()}
            if any(by_tokenizers(patterns, text) != words[name] for name, patterns in PATTERNS.items()):
                left_out += 1
                print("left out:", ascii(text))
                continue
            row = {"text": text} | {name: [len(w.encode()) for w in cut] for name, cut in words.items()}
            out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
    print("left out:", left_out)


main()
