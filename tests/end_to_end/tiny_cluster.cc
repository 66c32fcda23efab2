#include "tests/end_to_end/tiny_cluster.h"

#include "common/check.h"
#include "engine/load_engine.h"
#include "gtest/gtest.h"
#include "tests/support/tiny_model.h"

namespace baton {
namespace {

std::unique_ptr<Engine> Load(Architecture architecture, uint64_t seed) {
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      LoadEngine({.model_path = WriteTinyModel(architecture, seed, testing::TempDir()),
                  .context_tokens = 1024,
                  .kv_bytes = 8 << 20,
                  .max_step_tokens = 256,
                  .max_batch_rows = 512,
                  .layer_range = 2});
  BATON_CHECK(engine.ok());
  return *std::move(engine);
}

std::unique_ptr<ServedModel> Served(Architecture architecture) {
  absl::StatusOr<std::unique_ptr<ServedModel>> model =
      ServedModel::Load(WriteTinyModel(architecture, 7, testing::TempDir()));
  BATON_CHECK(model.ok());
  return *std::move(model);
}

}  // namespace

TinyEngine::TinyEngine(Architecture architecture, uint64_t seed) : engine_(Load(architecture, seed)) {}

TinyModel::TinyModel(size_t prefill_workers, size_t decode_workers, Architecture architecture)
    : served(Served(architecture)) {
  while (prefill.size() < prefill_workers) prefill.push_back(std::make_unique<TinyEngine>(architecture));
  while (decode.size() < decode_workers) decode.push_back(std::make_unique<TinyEngine>(architecture));
}

ClusterOptions TinyModel::options() const {
  ClusterOptions options = {
      .model = served.get(), .prefill_options = {.chunk_tokens = 64}, .at_end = [this] { OpenGates(); }};
  for (const auto& engine : prefill) options.prefill.push_back(&engine->gate());
  for (const auto& engine : decode) options.decode.push_back(&engine->gate());
  return options;
}

void TinyModel::OpenGates() const {
  for (const auto* engines : {&prefill, &decode}) {
    for (const auto& engine : *engines) engine->gate().Open();
  }
}

}  // namespace baton
