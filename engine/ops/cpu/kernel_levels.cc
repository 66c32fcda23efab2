#include "engine/ops/cpu/kernel_levels.h"

#include "common/str_cat.h"

namespace baton {
namespace {

bool RunsAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}

bool RunsAvx512() {
  return RunsAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

}  // namespace

std::vector<const KernelTable*> SupportedKernels() {
  std::vector<const KernelTable*> levels;
  if (RunsAvx512()) levels.push_back(&kAvx512Kernels);
  if (RunsAvx2()) levels.push_back(&kAvx2Kernels);
  levels.push_back(&kPortableKernels);
  return levels;
}

absl::StatusOr<const KernelTable*> ChooseKernels(std::string_view name) {
  const std::vector<const KernelTable*> supported = SupportedKernels();
  if (name == "auto") return supported.front();
  for (const KernelTable* kernels : supported) {
    if (name == kernels->name) return kernels;
  }
  for (const KernelTable* kernels : {&kAvx512Kernels, &kAvx2Kernels}) {
    if (name == kernels->name) {
      return absl::UnimplementedError(StrCat("this processor does not run the ", name, " kernels"));
    }
  }
  return absl::InvalidArgumentError(
      StrCat("kernels \"", name, "\", must be auto, reference, portable, avx2 or avx512"));
}

}  // namespace baton
