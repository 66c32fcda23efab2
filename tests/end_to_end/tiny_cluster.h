#ifndef BATON_TESTS_END_TO_END_TINY_CLUSTER_H_
#define BATON_TESTS_END_TO_END_TINY_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/model_file/model_config.h"
#include "router/served_model.h"
#include "tests/end_to_end/answer.h"
#include "tests/end_to_end/cluster.h"
#include "tests/support/gated_engine.h"

namespace baton {

// A tiny model with 1,024 tokens of context, on an engine behind a gate: for one worker.
class TinyEngine {
 public:
  explicit TinyEngine(Architecture architecture = Architecture::kLlama, uint64_t seed = 7);

  GatedEngine& gate() { return gate_; }

 private:
  const std::unique_ptr<Engine> engine_;
  GatedEngine gate_{engine_.get()};
};

// The engines of a cluster, and what its router knows of the same model.
struct TinyModel {
  TinyModel(size_t prefill_workers, size_t decode_workers, Architecture architecture = Architecture::kLlama);

  // For a cluster with a worker on each, which ends even where a test has failed with a gate closed.
  ClusterOptions options() const;
  void OpenGates() const;

  const std::unique_ptr<ServedModel> served;
  std::vector<std::unique_ptr<TinyEngine>> prefill;
  std::vector<std::unique_ptr<TinyEngine>> decode;
};

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_TINY_CLUSTER_H_
