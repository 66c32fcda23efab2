#include "engine/tokenizer/jinja/lexer.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "common/status_macros.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

constexpr std::string_view kSpaces = " \t\n\r\f\v";
constexpr std::string_view kSpacesInLine = " \t\r\f\v";
// Longer ones first.
constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", "<=", ">=", "+", "-", "*",
                                           "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                           "]",  "{",  "}",  ",",  ".",  ":",  "|"};

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(c) || c == '_'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    // As Jinja does unless told otherwise, one line end at the very end does not count.
    if (source_.ends_with('\n')) source_.remove_suffix(1);
  }

  absl::StatusOr<std::vector<Token>> Run() && {
    while (position_ < source_.size()) {
      const size_t tag = FindTag();
      const std::string_view opening = source_.substr(tag, 2);
      EmitData(tag, opening);
      if (opening.empty()) break;
      Advance(2);
      const bool marked =
          position_ < source_.size() && (source_[position_] == '-' || source_[position_] == '+');
      if (marked) Advance(1);
      if (opening == "{#") {
        RETURN_IF_ERROR(SkipComment());
      } else if (opening == "{%" && AtRaw()) {
        RETURN_IF_ERROR(LexRaw());
      } else {
        RETURN_IF_ERROR(LexTag(opening == "{%"));
      }
    }
    Emit(Token::Kind::kEnd, 0);
    return std::move(tokens_);
  }

 private:
  template <typename... Pieces>
  absl::Status ErrorHere(const Pieces&... reason) const {
    return Error("line ", line_, ": ", reason...);
  }

  void Advance(size_t bytes) {
    line_ += std::count(source_.begin() + position_, source_.begin() + position_ + bytes, '\n');
    position_ += bytes;
  }

  // Moves over `bytes` bytes, which are a token.
  void Emit(Token::Kind kind, size_t bytes) {
    tokens_.push_back({kind, source_.substr(position_, bytes), line_});
    Advance(bytes);
  }

  void SkipWhile(std::string_view characters) {
    const size_t end = std::min(source_.find_first_not_of(characters, position_), source_.size());
    Advance(end - position_);
  }

  bool At(std::string_view text) const { return source_.substr(position_).starts_with(text); }

  // The next "{%", "{{" or "{#", or the end of the source.
  size_t FindTag() const {
    for (size_t at = source_.find('{', position_); at != std::string_view::npos;
         at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() && std::string_view("%{#").find(source_[at + 1]) != std::string_view::npos)
        return at;
    }
    return source_.size();
  }

  // The text from here to the tag at `end`, less the white space that the tag takes away.
  void EmitData(size_t end, std::string_view opening) {
    std::string_view data = source_.substr(position_, end - position_);
    const char mark = end + 2 < source_.size() ? source_[end + 2] : '\0';
    if (!opening.empty() && mark == '-') {
      data = data.substr(0, data.find_last_not_of(kSpaces) + 1);
    } else if (!opening.empty() && opening != "{{" && mark != '+') {
      const size_t line_begin = data.rfind('\n') + 1;  // 0 when there is none
      const bool from_line_start = line_begin > 0 || at_line_start_;
      if (from_line_start && data.find_first_not_of(kSpacesInLine, line_begin) == std::string_view::npos) {
        data = data.substr(0, line_begin);
      }
    }
    if (!data.empty()) tokens_.push_back({Token::Kind::kData, data, line_});
    Advance(end - position_);
  }

  // After a closing bracket of a tag: `stripped` takes all white space, otherwise a block takes one line end.
  void FinishTag(bool stripped, bool trims_line_end) {
    const size_t begin = position_;
    if (stripped) {
      SkipWhile(kSpaces);
    } else if (trims_line_end && At("\n")) {
      Advance(1);
    }
    at_line_start_ = position_ > begin && source_[position_ - 1] == '\n';
  }

  absl::Status SkipComment() {
    const size_t end = source_.find("#}", position_);
    if (end == std::string_view::npos) return ErrorHere("a comment is not closed");
    const char mark = end > position_ ? source_[end - 1] : '\0';
    Advance(end + 2 - position_);
    FinishTag(mark == '-', mark != '+');
    return absl::OkStatus();
  }

  bool AtRaw() const {
    const size_t name = source_.find_first_not_of(kSpaces, position_);
    if (name == std::string_view::npos || !source_.substr(name).starts_with("raw")) return false;
    const size_t close = source_.find_first_not_of(kSpaces, name + 3);
    const std::string_view rest = close == std::string_view::npos ? "" : source_.substr(close);
    return rest.starts_with("%}") || rest.starts_with("-%}");
  }

  // At the name in {% raw %}: its content is data up to {% endraw %}.
  absl::Status LexRaw() {
    const int first_line = line_;
    Advance(source_.find("%}", position_) - position_);
    const bool strips = source_[position_ - 1] == '-';
    Advance(2);
    FinishTag(strips, false);
    for (size_t tag = source_.find("{%", position_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      size_t name = tag + 2;
      if (name < source_.size() && (source_[name] == '-' || source_[name] == '+')) ++name;
      name = source_.find_first_not_of(kSpaces, name);
      if (name == std::string_view::npos || !source_.substr(name).starts_with("endraw")) continue;
      const size_t close = std::min(source_.find_first_not_of(kSpaces, name + 6), source_.size());
      const bool minus = close < source_.size() && source_[close] == '-';
      const bool plus = close < source_.size() && source_[close] == '+';
      if (source_.substr(close + minus + plus, 2) != "%}") continue;
      EmitData(tag, "{%");
      Advance(close + minus + plus + 2 - position_);
      FinishTag(minus, !plus);
      return absl::OkStatus();
    }
    line_ = first_line;
    return ErrorHere("a raw block is not closed");
  }

  absl::Status LexTag(bool is_block) {
    const std::string_view closing = is_block ? "%}" : "}}";
    const int first_line = line_;
    Emit(is_block ? Token::Kind::kBlockBegin : Token::Kind::kPrintBegin, 0);
    int open_brackets = 0;
    while (true) {
      SkipWhile(kSpaces);
      if (position_ >= source_.size()) {
        line_ = first_line;
        return ErrorHere(is_block ? "a {% tag is not closed" : "a {{ tag is not closed");
      }
      const char mark = source_[position_];
      const bool marked =
          (mark == '-' || (is_block && mark == '+')) && source_.substr(position_ + 1, 2) == closing;
      if (marked || (open_brackets == 0 && At(closing))) {
        if (marked) Advance(1);
        Emit(is_block ? Token::Kind::kBlockEnd : Token::Kind::kPrintEnd, 2);
        FinishTag(marked && mark == '-', is_block && !marked);
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(LexToken());
      const std::string_view text = tokens_.back().text;
      if (tokens_.back().kind == Token::Kind::kOperator) {
        open_brackets +=
            (text == "(" || text == "[" || text == "{") - (text == ")" || text == "]" || text == "}");
      }
    }
  }

  absl::Status LexToken() {
    const char c = source_[position_];
    if (c == '"' || c == '\'') return LexString(c);
    if (absl::ascii_isdigit(c)) return LexNumber();
    if (IsNameStart(c)) {
      size_t end = position_;
      while (end < source_.size() && IsNamePart(source_[end])) ++end;
      Emit(Token::Kind::kName, end - position_);
      return absl::OkStatus();
    }
    for (const std::string_view op : kOperators) {
      if (At(op)) {
        Emit(Token::Kind::kOperator, op.size());
        return absl::OkStatus();
      }
    }
    return ErrorHere("unexpected character '", absl::CEscape(absl::string_view(&c, 1)), "' in a tag");
  }

  absl::Status LexString(char quote) {
    for (size_t end = position_ + 1; end < source_.size(); ++end) {
      if (source_[end] == '\\') {
        ++end;
      } else if (source_[end] == quote) {
        Emit(Token::Kind::kString, end + 1 - position_);
        return absl::OkStatus();
      }
    }
    return ErrorHere("a string is not closed");
  }

  size_t DigitsEnd(size_t from) const {
    while (from < source_.size() && absl::ascii_isdigit(source_[from])) ++from;
    return from;
  }

  // Digits, with a fraction and an exponent when digits follow their marks: "1.x" and "1..2" are no
  // fractions. After a dot a number is an index, so that "a.0.1" has two of them.
  absl::Status LexNumber() {
    const bool is_index = tokens_.back().IsOperator(".");
    size_t end = DigitsEnd(position_);
    bool is_float = false;
    if (!is_index && end + 1 < source_.size() && source_[end] == '.' &&
        absl::ascii_isdigit(source_[end + 1])) {
      end = DigitsEnd(end + 1);
      is_float = true;
    }
    if (!is_index && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '-' || source_[digits] == '+')) ++digits;
      if (DigitsEnd(digits) > digits) {
        end = DigitsEnd(digits);
        is_float = true;
      }
    }
    Emit(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, end - position_);
    return absl::OkStatus();
  }

  std::string_view source_;
  size_t position_ = 0;
  int line_ = 1;
  // Whether position_ is the first of a line, as far as stripping is concerned.
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

absl::StatusOr<std::vector<Token>> Lex(std::string_view source) { return Lexer(source).Run(); }

}  // namespace baton::jinja
