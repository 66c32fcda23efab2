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

struct Level {
  const KernelTable* kernels;
  bool (*runs)();
};

// The fastest first.
const Level kLevels[] = {
    {&kAvx512Kernels, RunsAvx512}, {&kAvx2Kernels, RunsAvx2}, {&kPortableKernels, [] { return true; }}};

std::vector<const KernelTable*> Kernels(bool supported) {
  std::vector<const KernelTable*> found;
  for (const Level& level : kLevels) {
    if (level.runs() == supported) found.push_back(level.kernels);
  }
  return found;
}

}  // namespace

std::vector<const KernelTable*> SupportedKernels() { return Kernels(true); }
std::vector<const KernelTable*> UnsupportedKernels() { return Kernels(false); }

std::vector<std::string> KernelChoices() {
  std::vector<std::string> names = {"auto", "reference"};
  for (const Level& level : kLevels) names.push_back(level.kernels->name);
  return names;
}

absl::StatusOr<const KernelTable*> ChooseKernels(std::string_view name) {
  if (name == "auto") return SupportedKernels().front();
  std::string names = "auto, reference";
  for (const Level& level : kLevels) {
    names = StrCat(names, ", ", level.kernels->name);
    if (name != level.kernels->name) continue;
    if (level.runs()) return level.kernels;
    return absl::UnimplementedError(StrCat("this processor does not run the ", name, " kernels"));
  }
  return absl::InvalidArgumentError(StrCat("kernels \"", name, "\", must be one of ", names));
}

}  // namespace baton
