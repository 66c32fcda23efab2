#include "common/token_file.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/log.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr std::string_view kHashed = "sha256:";
constexpr size_t kMaxFileBytes = 16 << 20;
constexpr size_t kMaxTokenBytes = 4096;  // of one that a caller presents

std::vector<std::string_view> Words(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(kBlank);
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    words.push_back(line.substr(0, line.find_first_of(kBlank)));
    line.remove_prefix(words.back().size());
  }
}

Sha256Hash HashOf(std::string_view text) {
  Sha256Hash hash;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), hash.data());
  return hash;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(StrCat("token-file: \"", path, "\" cannot be read"));
  }
  if (text.size() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        StrCat("token-file: ", text.size(), " bytes, at most ", kMaxFileBytes, " are allowed"));
  }
  return text;
}

}  // namespace

absl::StatusOr<TokenTable::Entry> TokenTable::ParseLine(const std::vector<std::string_view>& words) {
  if (words.size() < 2 || words.size() > 3) {
    return absl::InvalidArgumentError(StrCat("has ", words.size(), " words, must have NAME and TOKEN"));
  }
  Entry entry;
  entry.caller = {CallerRole::kClient, std::string(words[0])};
  if (words.size() == 3) {
    const std::optional<CallerRole> role = ParseCallerRole(words[2]);
    if (role != CallerRole::kClient && role != CallerRole::kOperator) {
      return absl::InvalidArgumentError("its third word is neither client nor operator");
    }
    entry.caller.role = *role;
  }
  std::string_view token = words[1];
  if (!token.starts_with(kHashed)) {
    entry.hash = HashOf(token);
    return entry;
  }
  token.remove_prefix(kHashed.size());
  if (token.size() != 2 * entry.hash.size()) {
    return absl::InvalidArgumentError(StrCat("its hash has ", token.size(), " digits, must have 64"));
  }
  for (size_t i = 0; i < entry.hash.size(); ++i) {
    const int high = HexDigit(token[2 * i]);
    const int low = HexDigit(token[2 * i + 1]);
    if (high < 0 || low < 0) return absl::InvalidArgumentError("its hash is not hexadecimal");
    entry.hash[i] = static_cast<uint8_t>(16 * high + low);
  }
  return entry;
}

absl::StatusOr<TokenTable> TokenTable::Parse(std::string_view text) {
  TokenTable table;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::vector<std::string_view> words = Words(line);
    if (words.empty()) continue;
    absl::StatusOr<Entry> entry = ParseLine(words);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          StrCat("token-file: line ", number, " ", StdView(entry.status().message())));
    }
    table.entries_.push_back(*std::move(entry));
  }
  if (table.entries_.empty()) return absl::InvalidArgumentError("token-file: holds no token");
  return table;
}

std::optional<CallerIdentity> TokenTable::Find(std::string_view token) const {
  if (token.empty() || token.size() > kMaxTokenBytes) return std::nullopt;
  const Sha256Hash hash = HashOf(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(hash.data(), entry.hash.data(), hash.size()) == 0) found = &entry;
  }
  return found == nullptr ? std::nullopt : std::optional(found->caller);
}

TokenFile::TokenFile(std::string path, absl::Duration interval, const Clock* clock)
    : path_(std::move(path)), interval_(interval), executor_("token-file", clock) {}

TokenFile::~TokenFile() { executor_.Stop(); }

absl::StatusOr<std::unique_ptr<TokenFile>> TokenFile::Open(const std::string& path, absl::Duration interval,
                                                           const Clock* clock) {
  std::unique_ptr<TokenFile> file(new TokenFile(path, interval, clock));
  RETURN_IF_ERROR(file->Reload());
  file->executor_.PostAt(clock->Now() + interval, [file = file.get()] { file->Look(); });
  return file;
}

absl::Status TokenFile::Reload() {
  ASSIGN_OR_RETURN(const std::string text, ReadText(path_));
  const Sha256Hash hash = HashOf(text);
  if (hash == read_) return absl::OkStatus();
  ASSIGN_OR_RETURN(TokenTable table, TokenTable::Parse(text));
  if (read_ != Sha256Hash()) Log(LogLevel::kInfo, "tokens_reloaded", {{"tokens", table.size()}});
  read_ = hash;
  MutexLock lock(&mutex_);
  table_ = std::make_shared<const TokenTable>(std::move(table));
  return absl::OkStatus();
}

void TokenFile::Look() {
  const absl::Status status = Reload();
  if (!status.ok() && status.message() != complaint_) {
    Log(LogLevel::kError, "tokens_not_reloaded", {{"message", std::string(status.message())}});
  }
  complaint_ = std::string(status.message());
  executor_.PostAt(executor_.Now() + interval_, [this] { Look(); });
}

std::optional<CallerIdentity> TokenFile::Find(std::string_view token) const {
  std::shared_ptr<const TokenTable> table;
  {
    MutexLock lock(&mutex_);
    table = table_;
  }
  return table->Find(token);
}

}  // namespace baton
