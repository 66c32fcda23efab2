#include "engine/load_engine.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model/model_geometry.h"
#include "engine/model/transformer.h"
#include "engine/model_engine.h"
#include "engine/model_file/model_config.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/cpu/cpu_ops.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/reference_ops.h"
#include "engine/ops/cpu/thread_pool.h"

namespace baton {
namespace {

constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlockTokens = 4096;
constexpr uint32_t kMaxBatchRows = 1 << 16;
constexpr std::string_view kReferenceKernels = "reference";

absl::Status CheckRange(std::string_view field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(field, " is ", value, ", must be ", least, " to ", most));
}

absl::Status CheckOptions(const EngineOptions& options) {
  RETURN_IF_ERROR(CheckRange("threads", options.threads, 1, kMaxThreads));
  RETURN_IF_ERROR(ThreadPool::CheckCores(options.cores, options.threads));
  RETURN_IF_ERROR(CheckRange("block_tokens", options.block_tokens, 1, kMaxBlockTokens));
  if (!std::has_single_bit(options.block_tokens)) {
    return absl::InvalidArgumentError(
        StrCat("block_tokens is ", options.block_tokens, ", must be a power of two"));
  }
  RETURN_IF_ERROR(CheckRange("max_batch_rows", options.max_batch_rows, 1, kMaxBatchRows));
  RETURN_IF_ERROR(CheckRange("max_step_tokens", options.max_step_tokens, 1, options.max_batch_rows));
  return CheckRange("layer_range", options.layer_range, 1, UINT32_MAX);
}

absl::StatusOr<std::unique_ptr<Ops>> CreateOps(const EngineOptions& options, Device* device,
                                               EngineInfo& info) {
  info.kernels = options.kernels;
  if (options.kernels == kReferenceKernels) return CreateReferenceOps(device, options.threads);
  ASSIGN_OR_RETURN(const KernelTable* kernels, ChooseKernels(options.kernels));
  info.kernels = kernels->name;
  return CreateCpuOps(
      device, *kernels,
      {.threads = options.threads, .cores = options.cores, .weight_limit_bytes = options.weight_bytes});
}

// Gives back the memory of a mapped file's tensors once they are packed. Their pages stay in the page cache,
// from which the rows of the embedding come back as they are used.
void ReleaseTensors(const ModelFile& file) {
  const uintptr_t page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  for (const TensorView& tensor : file.tensors()) {
    const uintptr_t data = reinterpret_cast<uintptr_t>(tensor.data.data());
    const uintptr_t begin = (data + page - 1) / page * page;
    const uintptr_t end = (data + tensor.data.size()) / page * page;
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

std::vector<LayerRange> CutLayers(uint32_t layers, uint32_t range) {
  std::vector<LayerRange> ranges;
  for (uint32_t begin = 0; begin < layers; begin = ranges.back().end) {
    ranges.push_back({begin, layers - begin > range ? begin + range : layers});
  }
  return ranges;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> LoadEngine(const EngineOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  RETURN_IF_ERROR(CheckOptions(options));
  ModelParts parts;
  parts.max_batch_rows = options.max_batch_rows;
  ASSIGN_OR_RETURN(parts.file, ModelFile::Open(options.model_path));
  ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*parts.file));
  EngineInfo info;
  info.context_tokens = options.context_tokens == 0 ? config.context_tokens : options.context_tokens;
  RETURN_IF_ERROR(CheckRange("context_tokens", info.context_tokens, 1, config.context_tokens));

  parts.device = CreateCpuDevice();
  ASSIGN_OR_RETURN(parts.ops, CreateOps(options, parts.device.get(), info));
  const KvGeometry geometry = GeometryOf(config, options.kv_type, options.block_tokens);
  ASSIGN_OR_RETURN(parts.pools, KvPools::Create(parts.device.get(), geometry, options.kv_bytes,
                                                info.context_tokens, options.max_step_tokens));
  ASSIGN_OR_RETURN(parts.transformer, Transformer::Load(*parts.file, config, parts.device.get(),
                                                        parts.ops.get(), options.max_batch_rows));
  info.model_name = config.name;
  info.fingerprint = StrCat(parts.file->content_hash(), "-", geometry.LayoutId());
  info.prefill_recipe = info.decode_recipe = parts.ops->recipe();
  info.has_chat_template = parts.file->GetString("tokenizer.chat_template").has_value();
  info.vocab_size = config.vocab_size;
  info.layers = config.layers;
  info.layer_ranges = CutLayers(config.layers, options.layer_range);
  info.weight_bytes = parts.ops->weight_bytes();
  if (options.kernels != kReferenceKernels) ReleaseTensors(*parts.file);
  info.load_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return std::make_unique<ModelEngine>(std::move(info), std::move(parts));
}

}  // namespace baton
