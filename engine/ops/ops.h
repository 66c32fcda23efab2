#ifndef BATON_ENGINE_OPS_OPS_H_
#define BATON_ENGINE_OPS_OPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/kv/kv_geometry.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/batch.h"

namespace baton {

// A weight in the form that one Ops made it, and only that Ops understands.
class Weight {
 public:
  virtual ~Weight() = default;
};

// Rotary position embedding over the first `dims` dimensions of a head; the rest passes through.
struct Rope {
  float base = 0;
  float position_scale = 1;
  uint32_t dims = 0;
  bool interleaved = false;     // pairs are (2i, 2i + 1); else (i, i + dims / 2)
  std::vector<float> divisors;  // of each pair's frequency, [dims / 2]; empty = 1
  friend bool operator==(const Rope&, const Rope&) = default;
};

// One layer of a KV pool. A plane, one block of the layer, is [K, V][kv_heads][block_tokens][head_dim].
struct KvLayer {
  DeviceSpan planes;  // [block], plane_bytes each
  uint64_t plane_bytes = 0;
  uint32_t group = 0;  // whose block table applies
  KvType type = KvType::kF16;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  uint32_t block_tokens = 0;
  uint32_t window_tokens = 0;  // a row sees this many latest tokens, itself included; 0 = all
};

// The constants of the ops around attention. Null weights are steps that the model does not have.
struct AttentionWeights {
  const Weight* norm = nullptr;         // [hidden]
  const Weight* qkv = nullptr;          // [heads * head_dim | kv_heads * head_dim, twice][hidden]
  const Weight* q_norm = nullptr;       // [head_dim]
  const Weight* k_norm = nullptr;       // [head_dim]
  const Weight* output = nullptr;       // [hidden][heads * head_dim]
  const Weight* output_norm = nullptr;  // [hidden], on the projection, before the residual
  uint32_t heads = 0;
  float scale = 0;  // of q . k
  float norm_epsilon = 0;
  Rope rope;
};

enum class GateActivation { kSilu, kGeluTanh };

struct MlpWeights {
  const Weight* norm = nullptr;         // [hidden]
  const Weight* gate_up = nullptr;      // [feed_forward, twice][hidden]
  const Weight* down = nullptr;         // [hidden][feed_forward]
  const Weight* output_norm = nullptr;  // [hidden], before the residual
  GateActivation activation = GateActivation::kSilu;
  float norm_epsilon = 0;
};

struct HeadWeights {
  const Weight* norm = nullptr;  // [hidden]
  const Weight* head = nullptr;  // [vocab][hidden]
  float norm_epsilon = 0;
};

// The sizes that scratch memory is made for.
struct OpsLimits {
  uint32_t rows = 0;
  uint32_t hidden = 0;
  uint32_t feed_forward = 0;
  uint32_t qkv = 0;  // (heads + 2 kv_heads) * head_dim
};

// The compute of a model on one device, in coarse steps inside which a device may fuse as it likes. Every
// value of a row is the same bits whatever the other rows, the number of threads and the block size.
//
// Activations are float32 device buffers, rows contiguous: hidden [rows, hidden], query and attended [rows,
// heads * head_dim], logits [rows, vocab]. Used by one thread at a time. Weights must not outlive the Ops.
class Ops {
 public:
  virtual ~Ops() = default;

  // Names the arithmetic: equal recipes give equal bits.
  virtual std::string recipe() const = 0;
  virtual uint64_t weight_bytes() const = 0;

  // `tensors`, stacked by rows; all have the same number of columns. What is needed of them is copied.
  virtual absl::StatusOr<std::unique_ptr<Weight>> LoadMatrix(absl::Span<const TensorView* const> tensors) = 0;
  virtual absl::StatusOr<std::unique_ptr<Weight>> LoadVector(const TensorView& tensor) = 0;
  // Rows that are looked up, not multiplied; `tensor` must outlive the weight.
  virtual absl::StatusOr<std::unique_ptr<Weight>> LoadTable(const TensorView& tensor) = 0;
  virtual absl::Status Reserve(const OpsLimits& limits) = 0;

  // The ops below compute the rows of `batch`, which outlives them, until the next BeginStep.
  virtual void BeginStep(const Batch& batch) = 0;
  // hidden = table[token] * scale
  virtual void Embed(const Weight& table, float scale, DeviceSpan hidden) = 0;
  // query, K, V = rope(norm(norm(hidden) qkv)); K and V go into the pool.
  virtual void AttentionInput(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan hidden,
                              DeviceSpan query) = 0;
  // attended = softmax(scale * query K) V over what each row sees, K and V as they are stored.
  virtual void Attention(const AttentionWeights& weights, const KvLayer& kv, DeviceSpan query,
                         DeviceSpan attended) = 0;
  // hidden += norm(attended output)
  virtual void AttentionOutput(const AttentionWeights& weights, DeviceSpan attended, DeviceSpan hidden) = 0;
  // hidden += norm((activation(n gate) * (n up)) down) with n = norm(hidden)
  virtual void Mlp(const MlpWeights& weights, DeviceSpan hidden) = 0;
  // logits[i] = norm(hidden[rows[i]]) head
  virtual void Head(const HeadWeights& weights, absl::Span<const uint32_t> rows, DeviceSpan hidden,
                    DeviceSpan logits) = 0;
};

}  // namespace baton

#endif  // BATON_ENGINE_OPS_OPS_H_
