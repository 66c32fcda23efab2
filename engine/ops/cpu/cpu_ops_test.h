#ifndef BATON_ENGINE_OPS_CPU_ALL_OPS_H_
#define BATON_ENGINE_OPS_CPU_ALL_OPS_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/device/device.h"
#include "engine/model_file/dequantize.h"
#include "engine/model_file/model_file.h"
#include "engine/ops/batch.h"
#include "engine/ops/cpu/cpu_ops.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/reference_ops.h"
#include "engine/ops/ops.h"
#include "tests/support/random_tensor.h"

// What tests of all implementations share.
namespace baton {

// The AMX level with its instructions emulated; null where the rest of it does not run.
inline const KernelTable* EmulatedAmxKernels() {
  if (!ChooseKernels("avx512").ok()) return nullptr;
  static const KernelTable kernels = AmxKernelsWith("amx, emulated", EmulatedAmxMatmul);
  return &kernels;
}

// Every level that this processor runs, the emulated one last.
inline std::vector<const KernelTable*> AllKernels() {
  std::vector<const KernelTable*> levels = SupportedKernels();
  if (EmulatedAmxKernels() != nullptr) levels.push_back(EmulatedAmxKernels());
  return levels;
}

// The reference, then all kernels, at one and two threads.
inline std::vector<std::pair<std::string, std::unique_ptr<Ops>>> AllOps(Device* device) {
  std::vector<std::pair<std::string, std::unique_ptr<Ops>>> all;
  all.emplace_back("reference", CreateReferenceOps(device, 1));
  for (const KernelTable* kernels : AllKernels()) {
    all.emplace_back(kernels->name, CreateCpuOps(device, *kernels, {.threads = 1}));
    all.emplace_back(std::string(kernels->name) + " with 2 threads",
                     CreateCpuOps(device, *kernels, {.threads = 2}));
  }
  return all;
}

// With outliers, as real activations have.
inline std::vector<float> RandomRows(uint32_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> rows(count);
  std::normal_distribution<float> normal;
  for (float& x : rows) x = normal(random) * (random() % 50 == 0 ? 8.0f : 1.0f);
  return rows;
}

// A tensor and its bytes.
struct OwnedTensor {
  std::vector<std::byte> bytes;
  TensorView view;
};

inline std::unique_ptr<OwnedTensor> MakeTensor(TensorType type, uint32_t rows, uint32_t columns,
                                               float deviation, uint32_t seed) {
  std::mt19937 random(seed);
  auto tensor = std::make_unique<OwnedTensor>();
  tensor->bytes = RandomTensor(type, uint64_t{rows} * columns, deviation, random);
  tensor->view = {.name = "random", .type = type, .dims = {columns, rows}, .data = tensor->bytes};
  return tensor;
}

inline std::unique_ptr<OwnedTensor> MakeVector(uint32_t size, uint32_t seed) {
  auto tensor = MakeTensor(TensorType::kF32, 1, size, 0.3f, seed);
  tensor->view.dims = {size};
  return tensor;
}

inline std::vector<float> Values(const OwnedTensor& tensor) {
  const TensorTypeTraits traits = TraitsOf(tensor.view.type);
  std::vector<float> values(tensor.bytes.size() / traits.bytes * traits.elements);
  Dequantize(tensor.view.type, tensor.bytes, absl::MakeSpan(values));
  return values;
}

inline Batch OneSequence(uint32_t rows, uint32_t position, absl::Span<const uint32_t> table) {
  Batch batch;
  batch.tokens.assign(rows, 0);
  batch.sequences.push_back({.first_row = 0, .rows = rows, .position = position, .tables = {table}});
  return batch;
}

inline DeviceSpan SpanOf(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_ALL_OPS_H_
