#include "engine/bench_model.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model/model_geometry.h"
#include "engine/ops/cpu/cpu_ops.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/reference_ops.h"
#include "engine/ops/cpu/thread_pool.h"

namespace baton {
namespace {

constexpr uint32_t kDecodeRoom = 128;  // tokens that a sequence may append after its depth
constexpr uint32_t kMaxStreams = 256;
constexpr uint32_t kBlockTokens = 16;

absl::Status CheckCount(const char* what, uint32_t value, uint32_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(what, " is ", value, ", must be 1 to ", most));
}

}  // namespace

absl::StatusOr<std::unique_ptr<BenchModel>> BenchModel::Load(const BenchModelOptions& options) {
  std::unique_ptr<BenchModel> model(new BenchModel());
  RETURN_IF_ERROR(ThreadPool::CheckCores(options.cores, options.threads));
  ASSIGN_OR_RETURN(model->file_, ModelFile::Open(options.model));
  ASSIGN_OR_RETURN(model->config_, ReadModelConfig(*model->file_));
  model->device_ = CreateCpuDevice();
  if (options.kernels == "reference") {
    model->kernels_ = options.kernels;
    model->ops_ = CreateReferenceOps(model->device_.get(), options.threads);
  } else {
    ASSIGN_OR_RETURN(const KernelTable* kernels, ChooseKernels(options.kernels));
    model->kernels_ = kernels->name;
    model->ops_ =
        CreateCpuOps(model->device_.get(), *kernels, {.threads = options.threads, .cores = options.cores});
  }
  model->step_tokens_ = options.step_tokens;
  const KvGeometry geometry = GeometryOf(model->config_, KvType::kF16, kBlockTokens);
  ASSIGN_OR_RETURN(model->pools_, KvPools::Create(model->device_.get(), geometry, options.kv_bytes,
                                                  options.context_tokens, options.step_tokens));
  ASSIGN_OR_RETURN(model->transformer_,
                   Transformer::Load(*model->file_, model->config_, model->device_.get(), model->ops_.get(),
                                     std::max(options.step_tokens, kMaxStreams)));
  return model;
}

std::vector<TokenId> BenchModel::Tokens(uint32_t count, uint32_t seed) const {
  std::vector<TokenId> tokens(count);
  uint64_t state = seed;
  for (TokenId& token : tokens) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    token = static_cast<TokenId>((state >> 33) % config_.vocab_size);
  }
  return tokens;
}

// Room for new sequences is made by dropping those that Decode has kept.
absl::StatusOr<SequenceKv> BenchModel::Reserve(uint32_t tokens) {
  absl::StatusOr<SequenceKv> kv = pools_->Reserve(tokens);
  if (!kv.ok()) {
    prepared_.clear();
    kv = pools_->Reserve(tokens);
  }
  if (kv.ok()) kv->Activate();
  return kv;
}

BatchSequence BenchModel::MakePart(const SequenceKv& kv, uint32_t first_row, uint32_t rows,
                                   uint32_t position) const {
  BatchSequence part{.first_row = first_row, .rows = rows, .position = position, .tables = {}};
  for (uint32_t group = 0; group < kv.groups(); ++group) part.tables.push_back(kv.table(group));
  return part;
}

void BenchModel::Append(const SequenceKv& kv, absl::Span<const TokenId> tokens, uint32_t position) {
  batch_.tokens.assign(tokens.begin(), tokens.end());
  batch_.sequences = {MakePart(kv, 0, static_cast<uint32_t>(tokens.size()), position)};
  transformer_->Forward(batch_, *pools_, [](uint32_t) {});
}

absl::StatusOr<BenchModel::Timing> BenchModel::Prefill(uint32_t tokens) {
  RETURN_IF_ERROR(CheckCount("tokens", tokens, config_.context_tokens));
  ASSIGN_OR_RETURN(const SequenceKv kv, Reserve(tokens));
  const std::vector<TokenId> prompt = Tokens(tokens, 1);
  logits_.resize(config_.vocab_size);
  const absl::Time start = absl::Now();
  for (uint32_t begin = 0; begin < tokens; begin += step_tokens_) {
    Append(kv, absl::MakeConstSpan(prompt).subspan(begin, step_tokens_), begin);
  }
  transformer_->Logits({batch_.rows() - 1}, absl::MakeSpan(logits_));
  return Timing{tokens, absl::Now() - start};
}

absl::StatusOr<BenchModel::Timing> BenchModel::Decode(uint32_t depth, uint32_t streams, uint32_t steps) {
  RETURN_IF_ERROR(CheckCount("depth", depth, std::max(kDecodeRoom, config_.context_tokens) - kDecodeRoom));
  RETURN_IF_ERROR(CheckCount("streams", streams, std::min(kMaxStreams, transformer_->logits_rows())));
  RETURN_IF_ERROR(CheckCount("steps", steps, kDecodeRoom));
  auto found = prepared_.find({depth, streams});
  if (found == prepared_.end()) {
    std::vector<SequenceKv> sequences;
    for (uint32_t i = 0; i < streams; ++i) {
      ASSIGN_OR_RETURN(SequenceKv kv, Reserve(depth + kDecodeRoom));
      const std::vector<TokenId> prompt = Tokens(depth, i);
      for (uint32_t begin = 0; begin < depth; begin += step_tokens_) {
        Append(kv, absl::MakeConstSpan(prompt).subspan(begin, step_tokens_), begin);
      }
      sequences.push_back(std::move(kv));
    }
    found = prepared_.emplace(std::pair(depth, streams), std::move(sequences)).first;
  }
  std::vector<uint32_t> rows(streams);
  for (uint32_t i = 0; i < streams; ++i) rows[i] = i;
  logits_.resize(uint64_t{streams} * config_.vocab_size);
  const absl::Time start = absl::Now();
  for (uint32_t step = 0; step < steps; ++step) {
    batch_.tokens = Tokens(streams, step);
    batch_.sequences.clear();
    for (uint32_t i = 0; i < streams; ++i) {
      batch_.sequences.push_back(MakePart(found->second[i], i, 1, depth + step));
    }
    transformer_->Forward(batch_, *pools_, [](uint32_t) {});
    transformer_->Logits(rows, absl::MakeSpan(logits_));
  }
  return Timing{uint64_t{streams} * steps, absl::Now() - start};
}

absl::Status BenchModel::Logits(const std::vector<TokenId>& tokens, VisitRow visit) {
  for (const TokenId token : tokens) {
    if (token < config_.vocab_size) continue;
    return absl::InvalidArgumentError(StrCat("token ", token, ", must be below ", config_.vocab_size));
  }
  const uint32_t count = static_cast<uint32_t>(tokens.size());
  RETURN_IF_ERROR(CheckCount("tokens", count, config_.context_tokens));
  ASSIGN_OR_RETURN(const SequenceKv kv, Reserve(count));
  for (uint32_t begin = 0; begin < count; begin += step_tokens_) {
    Append(kv, absl::MakeConstSpan(tokens).subspan(begin, step_tokens_), begin);
    for (uint32_t row = 0; row < batch_.rows(); row += transformer_->logits_rows()) {
      std::vector<uint32_t> rows(std::min(transformer_->logits_rows(), batch_.rows() - row));
      for (uint32_t i = 0; i < rows.size(); ++i) rows[i] = row + i;
      logits_.resize(rows.size() * config_.vocab_size);
      transformer_->Logits(rows, absl::MakeSpan(logits_));
      for (const uint32_t i : rows) {
        const auto values = absl::MakeConstSpan(logits_).subspan((i - row) * uint64_t{config_.vocab_size},
                                                                 config_.vocab_size);
        RETURN_IF_ERROR(visit(begin + i, values));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace baton
