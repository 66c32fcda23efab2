#ifndef BATON_COMMON_TOKEN_FILE_H_
#define BATON_COMMON_TOKEN_FILE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/caller.h"
#include "common/clock.h"
#include "common/mutex.h"
#include "common/serial_executor.h"

namespace baton {

using Sha256Hash = std::array<uint8_t, 32>;

// The bearer tokens that a router takes. Only their SHA-256 is kept, and hashes are compared in constant
// time, each with every line, so that nothing about a token can be told from how long a refusal takes.
//
// A line is "NAME TOKEN" or "NAME sha256:HEX", with "operator" as a third word for one who may drain and
// abort. Two lines may have one NAME: that is how a token is replaced. '#' begins a comment. Random tokens
// are meant (openssl rand -hex 32): a hash of a guessable one can be guessed.
class TokenTable {
 public:
  // INVALID_ARGUMENT names the line and never its content.
  static absl::StatusOr<TokenTable> Parse(std::string_view text);

  std::optional<CallerIdentity> Find(std::string_view token) const;
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Sha256Hash hash;
    CallerIdentity caller;
  };

  static absl::StatusOr<Entry> ParseLine(const std::vector<std::string_view>& words);

  std::vector<Entry> entries_;
};

// A TokenTable that follows its file. A file that cannot be read or parsed leaves the table as it was, and is
// said once in the log. Thread-safe.
class TokenFile {
 public:
  // Looks at the file every `interval`, on a thread of its own. `clock` outlives it.
  static absl::StatusOr<std::unique_ptr<TokenFile>> Open(const std::string& path, absl::Duration interval,
                                                         const Clock* clock);
  ~TokenFile();

  std::optional<CallerIdentity> Find(std::string_view token) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  TokenFile(std::string path, absl::Duration interval, const Clock* clock);

  absl::Status Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  void Look();

  const std::string path_;
  const absl::Duration interval_;
  Sha256Hash read_ = {};   // of the text that table_ was made from; of the thread, like the next one
  std::string complaint_;  // the last one logged

  mutable Mutex mutex_;
  std::shared_ptr<const TokenTable> table_ ABSL_GUARDED_BY(mutex_);
  SerialExecutor executor_;  // the last member: its thread ends first
};

}  // namespace baton

#endif  // BATON_COMMON_TOKEN_FILE_H_
