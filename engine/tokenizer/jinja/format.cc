#include "engine/tokenizer/jinja/format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "common/status_macros.h"
#include "engine/tokenizer/jinja/code_points.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {
namespace {

constexpr int64_t kMaxIndent = 64;

// The shortest decimal that reads back as `value`; plain digits between 1e-6 and 1e21, an exponent outside.
std::string ShortestDecimal(double value) {
  char buffer[64];
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-6 && magnitude < 1e21);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto [end, unused] = std::to_chars(buffer, buffer + sizeof(buffer), value, format);
  std::string digits(buffer, end);
  // "1e-07": exponents are written without leading zeros.
  const size_t exponent = digits.find('e');
  if (exponent != std::string::npos) {
    const size_t first = exponent + 2;
    const size_t nonzero = digits.find_first_not_of('0', first);
    digits.erase(first, nonzero - first);
  }
  return digits;
}

std::string FormatFloat(double value) {
  std::string digits = ShortestDecimal(value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

void AppendEscapedUnit(uint32_t unit, std::string* out) {
  char buffer[8];
  std::snprintf(buffer, sizeof(buffer), "\\u%04x", static_cast<unsigned>(unit));
  out->append(buffer);
}

// JSON's form of one code point, empty when it stands for itself.
std::string EscapedCodePoint(char32_t c, bool ensure_ascii) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  std::string escaped;
  if (c < 0x20 || (ensure_ascii && c >= 0x7F && c < 0x10000)) {
    AppendEscapedUnit(c, &escaped);
  } else if (ensure_ascii && c >= 0x10000) {
    AppendEscapedUnit(0xD800 + ((c - 0x10000) >> 10), &escaped);
    AppendEscapedUnit(0xDC00 + ((c - 0x10000) & 0x3FF), &escaped);
  }
  return escaped;
}

// Writes one value; owned by one call of ToJson.
class JsonWriter {
 public:
  JsonWriter(const JsonOptions& options, Budget* budget, Text* out)
      : options_(options), budget_(budget), out_(out) {}

  absl::Status Write(const Value& value, int64_t level) {
    RETURN_IF_ERROR(budget_->Step());
    if (out_->size() > kMaxTextBytes) {
      return Error("printed JSON is over the limit of ", kMaxTextBytes, " bytes");
    }
    switch (value.kind()) {
      case Value::Kind::kUndefined:
        return Literal(options_.undefined);
      case Value::Kind::kNone:
        return Literal("null");
      case Value::Kind::kBoolean:
        return Literal(*value.boolean() ? "true" : "false");
      case Value::Kind::kInteger:
        out_->Append(StrCat(value.integer()->value), value.number_origin());
        return absl::OkStatus();
      case Value::Kind::kFloat: {
        const double number = value.floating()->value;
        out_->Append(ShortestDecimal(number == 0 ? 0 : number), value.number_origin());
        return absl::OkStatus();
      }
      case Value::Kind::kString:
        return String(*value.text());
      case Value::Kind::kList:
        return Items(value.list()->items, level);
      case Value::Kind::kDict:
        return Entries(value.dict()->entries, level);
      case Value::Kind::kNamespace:
        return Entries(value.space()->entries, level);
      case Value::Kind::kLoop:
      case Value::Kind::kCallable:
        break;
    }
    return Error(value.KindName(), " has no printed form");
  }

 private:
  absl::Status Literal(std::string_view bytes) {
    out_->Append(bytes, Origin::kTemplate);
    return absl::OkStatus();
  }

  absl::Status String(const Text& text) {
    RETURN_IF_ERROR(budget_->Allocate(text.allocated_bytes()));
    RETURN_IF_ERROR(Literal("\""));
    size_t copied = 0;
    for (size_t offset = 0; offset < text.size();) {
      const size_t next = offset + CodePointBytes(text.bytes(), offset);
      const std::string escaped = EscapedCodePoint(CodePointAt(text.bytes(), offset), options_.ensure_ascii);
      if (!escaped.empty()) {
        out_->Append(text, copied, offset);
        out_->Append(escaped, text.OriginOf(offset, next));
        copied = next;
      }
      offset = next;
    }
    out_->Append(text, copied, text.size());
    return Literal("\"");
  }

  absl::Status Key(const Value& key) {
    if (const Text* text = key.text()) return String(*text);
    out_->Append(StrCat("\"", key.integer()->value, "\""), key.number_origin());
    return absl::OkStatus();
  }

  // Integers, then strings.
  static bool SortsBefore(const Value& a, const Value& b) {
    if (a.kind() != b.kind()) return a.integer() != nullptr;
    if (a.integer() != nullptr) return a.integer()->value < b.integer()->value;
    return a.text()->bytes() < b.text()->bytes();
  }

  void NewLine(int64_t level) {
    if (options_.indent == 0) return;
    out_->Append(std::string(1 + level * options_.indent, ' ').replace(0, 1, "\n"), Origin::kTemplate);
  }

  absl::Status Separator(bool first) {
    if (!first) out_->Append(options_.item_separator);
    return budget_->Allocate(options_.indent + options_.item_separator.size() +
                             options_.key_separator.size());
  }

  absl::Status Items(const std::vector<Value>& items, int64_t level) {
    RETURN_IF_ERROR(Literal("["));
    for (size_t i = 0; i < items.size(); ++i) {
      RETURN_IF_ERROR(Separator(i == 0));
      NewLine(level + 1);
      RETURN_IF_ERROR(Write(items[i], level + 1));
    }
    if (!items.empty()) NewLine(level);
    return Literal("]");
  }

  absl::Status Entries(std::vector<Dict::Entry> entries, int64_t level) {
    if (options_.sort_keys) {
      RETURN_IF_ERROR(budget_->Step(entries.size() * 12));
      std::stable_sort(entries.begin(), entries.end(),
                       [](const auto& a, const auto& b) { return SortsBefore(a.first, b.first); });
    }
    RETURN_IF_ERROR(Literal("{"));
    for (size_t i = 0; i < entries.size(); ++i) {
      RETURN_IF_ERROR(Separator(i == 0));
      NewLine(level + 1);
      RETURN_IF_ERROR(Key(entries[i].first));
      out_->Append(options_.key_separator);
      RETURN_IF_ERROR(Write(entries[i].second, level + 1));
    }
    if (!entries.empty()) NewLine(level);
    return Literal("}");
  }

  const JsonOptions& options_;
  Budget* const budget_;
  Text* const out_;
};

}  // namespace

absl::StatusOr<Text> ToJson(const Value& value, const JsonOptions& options, Budget* budget) {
  if (options.indent < 0 || options.indent > kMaxIndent) {
    return Error("tojson: indent ", options.indent, " is not in 0 .. ", kMaxIndent);
  }
  Text out;
  RETURN_IF_ERROR(JsonWriter(options, budget, &out).Write(value, 0));
  return out;
}

absl::Status AppendPrinted(const Value& value, Text* out, Budget* budget) {
  if (const Text* text = value.text()) {
    RETURN_IF_ERROR(budget->Allocate(text->size()));
    out->Append(*text);
  } else if (const Float* number = value.floating()) {
    out->Append(FormatFloat(number->value), number->origin);
  } else if (!value.is(Value::Kind::kUndefined) && !value.is(Value::Kind::kNone)) {
    JsonOptions options;
    options.undefined = "undefined";
    ASSIGN_OR_RETURN(const Text json, ToJson(value, options, budget));
    out->Append(json);
  }
  if (out->size() > kMaxTextBytes) {
    return Error("a text is over the limit of ", kMaxTextBytes, " bytes");
  }
  return absl::OkStatus();
}

absl::StatusOr<Text> Printed(const Value& value, Budget* budget) {
  Text out;
  RETURN_IF_ERROR(AppendPrinted(value, &out, budget));
  return out;
}

}  // namespace baton::jinja
