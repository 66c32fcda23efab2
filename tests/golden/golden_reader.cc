#include "tests/golden/golden_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "nlohmann/json.hpp"

namespace baton::golden {
namespace {

using Json = nlohmann::json;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// One case per line. The JSON library throws on anything unexpected; here that becomes a status.
template <typename Case>
absl::StatusOr<std::vector<Case>> ReadLines(const std::string& path, Case (*parse)(const Json&)) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  std::vector<Case> cases;
  try {
    for (size_t begin = 0; begin < content.size();) {
      const size_t end = std::min(content.find('\n', begin), content.size());
      cases.push_back(parse(Json::parse(content.begin() + begin, content.begin() + end)));
      begin = end + 1;
    }
  } catch (const Json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat(path, ", line ", cases.size() + 1, ": ", e.what()));
  }
  return cases;
}

// Takes little-endian values off the front of a file; once it runs dry every value is zero and ok() is false.
class Cursor {
 public:
  explicit Cursor(std::string_view data) : data_(data) {}

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && data_.empty(); }

  std::string_view Bytes(size_t count) {
    if (count > data_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view bytes = data_.substr(0, count);
    data_.remove_prefix(count);
    return bytes;
  }

  template <typename T>
  T Value() {
    T value{};
    const std::string_view bytes = Bytes(sizeof(T));
    if (ok_) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  template <typename T>
  std::vector<T> Values(uint32_t count) {
    const std::string_view bytes = Bytes(size_t{count} * sizeof(T));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  TopLogits Top(uint32_t count) {
    TopLogits top;
    top.logsumexp = Value<float>();
    top.ids = Values<TokenId>(count);
    top.logits = Values<float>(count);
    return top;
  }

 private:
  std::string_view data_;
  bool ok_ = true;
};

absl::Status Ended(const Cursor& cursor, const std::string& path) {
  if (cursor.at_end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, cursor.ok() ? " has bytes left over" : " is cut short"));
}

absl::Status WrongMagic(const std::string& path) {
  return absl::InvalidArgumentError(absl::StrCat(path, " does not begin with its format's four letters"));
}

}  // namespace

absl::StatusOr<std::vector<TokenCase>> ReadTokens(const std::string& path) {
  return ReadLines<TokenCase>(path, [](const Json& line) {
    return TokenCase{line.at("text").get<std::string>(), line.at("special").get<bool>(),
                     line.at("ids").get<std::vector<TokenId>>()};
  });
}

absl::StatusOr<std::vector<DequantizeCase>> ReadDequantize(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  Cursor cursor(content);
  if (cursor.Bytes(4) != "BGDQ") return WrongMagic(path);
  const uint32_t count = cursor.Value<uint32_t>();
  std::vector<DequantizeCase> cases;
  for (uint32_t i = 0; i < count && cursor.ok(); ++i) {
    DequantizeCase c;
    c.type = cursor.Value<uint32_t>();
    const uint32_t elements = cursor.Value<uint32_t>();
    c.bytes = std::string(cursor.Bytes(cursor.Value<uint32_t>()));
    c.values = cursor.Values<float>(elements);
    cases.push_back(std::move(c));
  }
  RETURN_IF_ERROR(Ended(cursor, path));
  return cases;
}

absl::StatusOr<std::vector<LogitsPrompt>> ReadLogits(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  Cursor cursor(content);
  if (cursor.Bytes(4) != "BGLG") return WrongMagic(path);
  const uint32_t top = cursor.Value<uint32_t>();
  const uint32_t count = cursor.Value<uint32_t>();
  std::vector<LogitsPrompt> prompts;
  for (uint32_t i = 0; i < count && cursor.ok(); ++i) {
    LogitsPrompt prompt;
    prompt.tokens = cursor.Values<TokenId>(cursor.Value<uint32_t>());
    const uint32_t rows = cursor.Value<uint32_t>();
    for (uint32_t r = 0; r < rows && cursor.ok(); ++r) {
      LogitsRow row;
      row.row = cursor.Value<uint32_t>();
      row.stride = cursor.Value<uint32_t>();
      const uint32_t kept = cursor.Value<uint32_t>();
      row.top = cursor.Top(top);
      row.values = cursor.Values<float>(kept);
      prompt.rows.push_back(std::move(row));
    }
    prompts.push_back(std::move(prompt));
  }
  RETURN_IF_ERROR(Ended(cursor, path));
  return prompts;
}

absl::StatusOr<Forced> ReadForced(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  Cursor cursor(content);
  if (cursor.Bytes(4) != "BGTF") return WrongMagic(path);
  const uint32_t top = cursor.Value<uint32_t>();
  Forced forced;
  forced.tokens = cursor.Values<TokenId>(cursor.Value<uint32_t>());
  for (size_t i = 0; i < forced.tokens.size() && cursor.ok(); ++i) forced.rows.push_back(cursor.Top(top));
  RETURN_IF_ERROR(Ended(cursor, path));
  return forced;
}

double BucketedKl(const TopLogits& reference, absl::Span<const float> logits) {
  const double greatest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits) sum += std::exp(x - greatest);
  const double logsumexp = greatest + std::log(sum);
  double kl = 0;
  double rest_p = 1;
  double rest_q = 1;
  for (size_t i = 0; i < reference.ids.size(); ++i) {
    const double log_p = double{reference.logits[i]} - reference.logsumexp;
    const double log_q = logits[reference.ids[i]] - logsumexp;
    kl += std::exp(log_p) * (log_p - log_q);
    rest_p -= std::exp(log_p);
    rest_q -= std::exp(log_q);
  }
  // Rounding may leave a rest of nothing a little below zero.
  constexpr double kLeast = 1e-12;
  rest_p = std::max(rest_p, kLeast);
  rest_q = std::max(rest_q, kLeast);
  return kl + rest_p * std::log(rest_p / rest_q);
}

absl::StatusOr<std::vector<GreedyCase>> ReadGreedy(const std::string& path) {
  return ReadLines<GreedyCase>(path, [](const Json& line) {
    const auto ids = [&](const char* name) { return line.at(name).get<std::vector<TokenId>>(); };
    return GreedyCase{line.at("text").get<std::string>(),
                      ids("prompt"),
                      ids("tokens"),
                      ids("f32_first"),
                      ids("f32_second"),
                      line.at("f32_gap").get<std::vector<float>>()};
  });
}

absl::StatusOr<std::vector<SamplingCase>> ReadSampling(const std::string& path) {
  return ReadLines<SamplingCase>(path, [](const Json& line) {
    const auto ids = [&](const char* name) { return line.at(name).get<std::vector<TokenId>>(); };
    SamplingCase c;
    c.logits = line.at("logits").get<std::vector<float>>();
    c.prompt = ids("prompt");
    c.output = ids("output");
    c.stop_ids = ids("stop_ids");
    c.temperature = line.value("temperature", c.temperature);
    c.top_p = line.value("top_p", c.top_p);
    c.min_p = line.value("min_p", c.min_p);
    c.presence_penalty = line.value("presence_penalty", c.presence_penalty);
    c.frequency_penalty = line.value("frequency_penalty", c.frequency_penalty);
    c.repetition_penalty = line.value("repetition_penalty", c.repetition_penalty);
    c.top_k = line.value("top_k", c.top_k);
    c.min_tokens = line.value("min_tokens", c.min_tokens);
    c.logit_bias = line.value("logit_bias", c.logit_bias);
    c.probs = line.at("probs").get<std::vector<double>>();
    return c;
  });
}

}  // namespace baton::golden
