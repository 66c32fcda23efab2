#ifndef BATON_TESTS_END_TO_END_EQUALITY_H_
#define BATON_TESTS_END_TO_END_EQUALITY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "baton/v1/control.pb.h"
#include "baton/v1/inference.pb.h"
#include "engine/engine.h"
#include "router/served_model.h"
#include "tests/end_to_end/answer.h"

// Whether an answer whose KV crossed from prefill to decode is the answer of one worker alone.
namespace baton {

// Everything that must not change an answer.
struct EqualityCase {
  uint32_t chunk_tokens = 0;
  uint32_t prefill_block = 0;
  uint32_t decode_block = 0;
  std::string transport;
  uint32_t threads = 0;
};
void PrintTo(const EqualityCase& c, std::ostream* out);
std::string NameOf(const EqualityCase& c);

// The prompts of a suite, by their lengths.
struct EqualityRequests {
  uint32_t alone_tokens = 0;           // of one that has the cluster for itself
  std::vector<uint32_t> crowd_tokens;  // of those that are computed together
  uint32_t max_tokens = 0;             // of each answer
};

// One model. What a decode worker by itself answers to each request, one at a time, is computed once and
// compared with what every arrangement answers.
class EqualitySuite {
 public:
  // `kv_bytes`: of each engine's pools.
  EqualitySuite(std::string model_path, const EqualityRequests& requests, uint64_t kv_bytes);
  ~EqualitySuite();

  // Expects that a prefill and a decode worker arranged so give the same answers, token for token and
  // log-probability for log-probability, and that the KV of each prompt moved, all of it and no more.
  void ExpectEqual(const EqualityCase& c);

 private:
  Engine* GetEngine(v1::Role role, uint32_t block_tokens, uint32_t threads);
  void Compare(const Answer& answer, size_t number, const KvGeometry& geometry,
               const std::string& transport) const;

  const std::string model_path_;
  const uint64_t kv_bytes_;
  const uint32_t max_tokens_;
  std::unique_ptr<ServedModel> model_;
  std::map<std::tuple<v1::Role, uint32_t, uint32_t>, std::unique_ptr<Engine>>
      engines_;                                // by role, block tokens, threads
  std::vector<v1::GenerateRequest> requests_;  // the one alone, then the crowd
  std::vector<std::string> expected_;          // by request
};

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_EQUALITY_H_
