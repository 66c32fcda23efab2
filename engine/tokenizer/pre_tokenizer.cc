#include "engine/tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "common/str_cat.h"
#include "engine/tokenizer/classified_text.h"

namespace baton {
namespace {

using Text = ClassifiedText;

struct Range {
  size_t begin = 0;  // code points
  size_t end = 0;
};

// Where the word that begins at `at` ends; at < result <= end. Nothing at or after `end` is looked at.
using WordEnd = size_t (*)(const Text& text, size_t at, size_t end);

size_t RunEnd(const Text& text, size_t at, size_t end, uint8_t classes) {
  while (at < end && text.Is(at, classes)) ++at;
  return at;
}

size_t SignsEnd(const Text& text, size_t at, size_t end) {
  while (at < end && text.IsSign(at)) ++at;
  return at;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Length of the contraction that begins at `at`, 0 if there is none.
size_t ContractionLength(const Text& text, size_t at, size_t end, bool any_case) {
  if (text.Ascii(at) != '\'' || at + 1 >= end) return 0;
  const auto letter = [&](size_t i) {
    if (any_case && text.IsLongS(i)) return 's';
    return any_case ? Lower(text.Ascii(i)) : text.Ascii(i);
  };
  const char first = letter(at + 1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (at + 2 >= end) return 0;
  const char second = letter(at + 2);
  const bool three =
      (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
  return three ? 3 : 0;
}

// White space that no other rule took: all of it at the end of the text, else all but its last character.
size_t SpacesEnd(const Text& text, size_t at, size_t end) {
  const size_t run_end = RunEnd(text, at, end, Text::kSpace);
  return run_end == end || run_end == at + 1 ? run_end : run_end - 1;
}

size_t Gpt2WordEnd(const Text& text, size_t at, size_t end) {
  if (const size_t length = ContractionLength(text, at, end, /*any_case=*/false); length > 0)
    return at + length;
  const size_t start = text.Ascii(at) == ' ' && at + 1 < end ? at + 1 : at;
  for (const uint8_t classes : {Text::kLetter, Text::kNumber}) {
    if (text.Is(start, classes)) return RunEnd(text, start, end, classes);
  }
  if (text.IsSign(start)) return SignsEnd(text, start, end);
  return SpacesEnd(text, at, end);
}

size_t LlamaWordEnd(const Text& text, size_t at, size_t end, size_t most_digits) {
  if (const size_t length = ContractionLength(text, at, end, /*any_case=*/true); length > 0)
    return at + length;
  if (text.Is(at, Text::kLetter)) return RunEnd(text, at, end, Text::kLetter);
  if (text.Is(at, Text::kNumber)) return RunEnd(text, at, std::min(end, at + most_digits), Text::kNumber);
  const bool is_line_end = text.Is(at, Text::kLineEnd);
  if (!is_line_end && at + 1 < end && text.Is(at + 1, Text::kLetter)) {
    return RunEnd(text, at + 1, end, Text::kLetter);
  }
  const size_t start = text.Ascii(at) == ' ' && at + 1 < end ? at + 1 : at;
  if (text.IsSign(start)) return RunEnd(text, SignsEnd(text, start, end), end, Text::kLineEnd);
  size_t last_line_end = RunEnd(text, at, end, Text::kSpace);
  while (last_line_end > at && !text.Is(last_line_end - 1, Text::kLineEnd)) --last_line_end;
  return last_line_end > at ? last_line_end : SpacesEnd(text, at, end);
}

size_t LlamaBpeWordEnd(const Text& text, size_t at, size_t end) { return LlamaWordEnd(text, at, end, 3); }
size_t Qwen2WordEnd(const Text& text, size_t at, size_t end) { return LlamaWordEnd(text, at, end, 1); }

// Each digit alone, what lies between in one piece.
size_t DigitOrRestEnd(const Text& text, size_t at, size_t end) {
  if (text.Is(at, Text::kNumber)) return at + 1;
  while (at < end && !text.Is(at, Text::kNumber)) ++at;
  return at;
}

// Runs of one class or of the others, in turn.
template <uint8_t kClass>
size_t RunOrRestEnd(const Text& text, size_t at, size_t end) {
  const bool in_class = text.Is(at, kClass);
  while (at < end && text.Is(at, kClass) == in_class) ++at;
  return at;
}

// ASCII digits by three; fewer than three belong to the rest.
size_t TripleOrRestEnd(const Text& text, size_t at, size_t end) {
  const auto is_triple = [&](size_t i) {
    return i + 3 <= end && text.Is(i, Text::kAsciiDigit) && text.Is(i + 1, Text::kAsciiDigit) &&
           text.Is(i + 2, Text::kAsciiDigit);
  };
  if (is_triple(at)) return at + 3;
  while (at < end && !is_triple(at)) ++at;
  return at;
}

// The rules of a pre-tokenizer are stages: each cuts what the one before left whole.
std::vector<WordEnd> StagesOf(PreTokenizer rules) {
  switch (rules) {
    case PreTokenizer::kGpt2:
      return {Gpt2WordEnd};
    case PreTokenizer::kSmollm:
      return {DigitOrRestEnd, Gpt2WordEnd};
    case PreTokenizer::kLlamaBpe:
      return {LlamaBpeWordEnd};
    case PreTokenizer::kQwen2:
      return {Qwen2WordEnd};
    case PreTokenizer::kDefault:
      return {RunOrRestEnd<Text::kPunctuation>, Gpt2WordEnd, RunOrRestEnd<Text::kNumber>, TripleOrRestEnd};
  }
  return {};
}

struct Name {
  std::string_view name;
  PreTokenizer rules;
};

constexpr std::array<Name, 7> kNames = {{
    {"gpt-2", PreTokenizer::kGpt2},
    {"smollm", PreTokenizer::kSmollm},
    {"llama-bpe", PreTokenizer::kLlamaBpe},
    {"llama3", PreTokenizer::kLlamaBpe},
    {"llama-v3", PreTokenizer::kLlamaBpe},
    {"qwen2", PreTokenizer::kQwen2},
    {"default", PreTokenizer::kDefault},
}};

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizerFromName(std::string_view name) {
  for (const Name& known : kNames) {
    if (known.name == name) return known.rules;
  }
  return absl::UnimplementedError(StrCat("tokenizer.ggml.pre is \"", name,
                                         "\", supported are gpt-2, smollm, llama-bpe, qwen2 and default"));
}

std::vector<std::string_view> SplitWords(PreTokenizer rules, std::string_view text) {
  const ClassifiedText classified(text);
  std::vector<Range> ranges;
  if (classified.size() > 0) ranges.push_back({0, classified.size()});
  for (const WordEnd word_end : StagesOf(rules)) {
    std::vector<Range> cut;
    for (const Range& range : ranges) {
      for (size_t at = range.begin; at < range.end;) {
        const size_t end = word_end(classified, at, range.end);
        cut.push_back({at, end});
        at = end;
      }
    }
    ranges = std::move(cut);
  }
  std::vector<std::string_view> words;
  words.reserve(ranges.size());
  for (const Range& range : ranges) words.push_back(classified.Slice(range.begin, range.end));
  return words;
}

}  // namespace baton
