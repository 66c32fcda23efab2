#include "engine/warm_up.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace baton {

WarmUpStep WarmUp(Engine* engine, uint32_t rows, const Clock& clock) {
  rows = std::min({rows, engine->kv().max_step_tokens(), engine->info().context_tokens});
  absl::StatusOr<SequenceKv> kv = engine->kv().Reserve(rows);
  if (!kv.ok()) return {};
  kv->Activate();
  const std::vector<TokenId> tokens(rows, 0);
  SequenceStep step;
  step.tokens = tokens;
  step.kv = &*kv;
  // The first pass pays for cold memory, which no later step does.
  engine->Execute({{step}}, nullptr);
  const absl::Time started = clock.Now();
  engine->Execute({{step}}, nullptr);
  return {rows, clock.Now() - started};
}

}  // namespace baton
