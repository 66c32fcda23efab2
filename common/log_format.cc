#include "common/log_format.h"

#include <charconv>
#include <cmath>
#include <cstdint>

#include "common/utf8.h"

namespace baton {
namespace {

void AppendEscaped(char c, std::string* out) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      *out += "\\\"";
      return;
    case '\\':
      *out += "\\\\";
      return;
    case '\n':
      *out += "\\n";
      return;
    case '\r':
      *out += "\\r";
      return;
    case '\t':
      *out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<uint8_t>(c);
  if (byte < 0x20 || byte == 0x7f) {
    *out += "\\u00";
    out->push_back(kHex[byte >> 4]);
    out->push_back(kHex[byte & 15]);
  } else {
    out->push_back(c);
  }
}

// Whether a reader of the text form can tell where the value ends without quotes.
bool IsPlainWord(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return false;
  }
  return true;
}

}  // namespace

LogField::LogField(std::string_view key, double value) : key_(key), bare_(std::isfinite(value)) {
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  value_.assign(buffer, result.ptr);
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : ReplaceInvalidUtf8(text)) AppendEscaped(c, &out);
  out.push_back('"');
  return out;
}

std::string FormatLogText(std::string_view event, std::span<const LogField> fields) {
  std::string out(event);
  for (const LogField& field : fields) {
    out.push_back(' ');
    out += field.key();
    out.push_back('=');
    out += IsPlainWord(field.value()) ? field.value() : JsonString(field.value());
  }
  return out;
}

std::string FormatLogJson(std::string_view event, std::span<const LogField> fields) {
  std::string out = "\"event\":" + JsonString(event);
  for (const LogField& field : fields) {
    out.push_back(',');
    out += JsonString(field.key());
    out.push_back(':');
    out += field.bare() ? field.value() : JsonString(field.value());
  }
  return out;
}

}  // namespace baton
