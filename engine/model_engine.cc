#include "engine/model_engine.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "engine/sampling/logprobs.h"

namespace baton {

ModelEngine::ModelEngine(EngineInfo info, ModelParts parts)
    : info_(std::move(info)),
      parts_(std::move(parts)),
      logits_(uint64_t{parts_.transformer->logits_rows()} * info_.vocab_size) {}

// What schedulers answer for.
void ModelEngine::CheckPlan(const StepPlan& plan) const {
  BATON_CHECK(plan.rows() > 0 && plan.rows() <= parts_.max_batch_rows);
  for (const SequenceStep& step : plan.sequences) {
    BATON_CHECK(!step.tokens.empty() && step.tokens.size() <= parts_.pools->max_step_tokens());
    BATON_CHECK(step.position + step.tokens.size() <= info_.context_tokens);
    BATON_CHECK(step.kv != nullptr && step.kv->groups() == parts_.pools->groups());
    for (const TokenId token : step.tokens) BATON_CHECK(token < info_.vocab_size);
    const KvGeometry& geometry = parts_.pools->geometry();
    for (uint32_t group = 0; group < step.kv->groups(); ++group) {
      const uint64_t held = step.kv->table(group).size() * uint64_t{geometry.block_tokens};
      const uint64_t needed =
          geometry.groups[group].window_tokens == 0
              ? step.position + step.tokens.size()
              : std::min<uint64_t>(step.position + step.tokens.size(),
                                   geometry.groups[group].window_tokens - 1 + step.tokens.size());
      BATON_CHECK(held >= needed);
    }
  }
}

Batch ModelEngine::MakeBatch(const StepPlan& plan) const {
  Batch batch;
  batch.sequences.reserve(plan.sequences.size());
  batch.tokens.reserve(plan.rows());
  for (const SequenceStep& step : plan.sequences) {
    BatchSequence& sequence = batch.sequences.emplace_back();
    sequence.first_row = batch.rows();
    sequence.rows = static_cast<uint32_t>(step.tokens.size());
    sequence.position = step.position;
    for (uint32_t group = 0; group < step.kv->groups(); ++group) {
      sequence.tables.push_back(step.kv->table(group));
    }
    batch.tokens.insert(batch.tokens.end(), step.tokens.begin(), step.tokens.end());
  }
  return batch;
}

// Log probabilities first: sampling modifies the logits.
void ModelEngine::Read(const WantedRow& wanted, absl::Span<float> logits) const {
  const SequenceStep& step = *wanted.step;
  if (wanted.next) {
    wanted.result->prompt_logprobs.push_back(TokenLogprobs(logits, *wanted.next, *step.prompt_logprobs));
  }
  if (wanted.sample) {
    const uint32_t position = step.position + static_cast<uint32_t>(step.tokens.size());
    wanted.result->sampled = step.sampler->Sample(logits, position, step.logprobs);
  }
}

StepResult ModelEngine::Execute(const StepPlan& plan, const LayersDone& layers_done) {
  CheckPlan(plan);
  const Batch batch = MakeBatch(plan);
  size_t range = 0;
  parts_.transformer->Forward(batch, *parts_.pools, [&](uint32_t layer) {
    if (layer + 1 < info_.layer_ranges[range].end) return;
    if (layers_done) layers_done(info_.layer_ranges[range]);
    ++range;
  });

  StepResult result;
  result.sequences.resize(plan.sequences.size());
  std::vector<WantedRow> wanted;
  for (size_t i = 0; i < plan.sequences.size(); ++i) {
    const SequenceStep& step = plan.sequences[i];
    const uint32_t rows = batch.sequences[i].rows;
    for (uint32_t r = step.prompt_logprobs ? 0 : rows - 1; r < rows; ++r) {
      const bool last = r + 1 == rows;
      WantedRow row{batch.sequences[i].first_row + r, &step, &result.sequences[i], std::nullopt,
                    last && step.sampler != nullptr};
      if (step.prompt_logprobs)
        row.next = last ? step.next_token : std::optional<TokenId>(step.tokens[r + 1]);
      if (row.next || row.sample) wanted.push_back(row);
    }
  }
  const uint32_t at_once = parts_.transformer->logits_rows();
  for (size_t first = 0; first < wanted.size(); first += at_once) {
    const size_t count = std::min<size_t>(at_once, wanted.size() - first);
    std::vector<uint32_t> rows(count);
    for (size_t i = 0; i < count; ++i) rows[i] = wanted[first + i].row;
    const absl::Span<float> logits = absl::MakeSpan(logits_).subspan(0, count * info_.vocab_size);
    parts_.transformer->Logits(rows, logits);
    for (size_t i = 0; i < count; ++i) {
      Read(wanted[first + i], logits.subspan(i * info_.vocab_size, info_.vocab_size));
    }
  }
  return result;
}

}  // namespace baton
