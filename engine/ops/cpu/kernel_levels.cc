#include "engine/ops/cpu/kernel_levels.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>

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

bool RunsAvx512Bf16() { return RunsAvx512() && __builtin_cpu_supports("avx512bf16"); }

// Linux gives a process its tile registers when it asks for them (Documentation/arch/x86/xstate.rst).
bool RunsAmx() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return RunsAvx512() && __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8") &&
         __builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

// The AVX-512 level with another matmul.
KernelTable Avx512KernelsWith(const char* name, uint32_t panel_rows, Bf16Arithmetic bf16,
                              void (*matmul)(const MatmulArgs& args)) {
  KernelTable kernels = kAvx512Kernels;
  kernels.name = name;
  kernels.panel_rows = panel_rows;
  kernels.bf16 = bf16;
  kernels.matmul = matmul;
  return kernels;
}

const KernelTable& AmxKernels() {
  static const KernelTable kernels = AmxKernelsWith("amx", AmxMatmul);
  return kernels;
}

const KernelTable& Avx512Bf16Kernels() {
  static const KernelTable kernels =
      Avx512KernelsWith("avx512bf16", kMaxPanelRows, Bf16Arithmetic::kPairs, Avx512Bf16Matmul);
  return kernels;
}

struct Level {
  const KernelTable* kernels;
  bool (*runs)();
};

const std::array<Level, 5>& Levels() {
  static const std::array<Level, 5> levels = {{{&AmxKernels(), RunsAmx},
                                               {&Avx512Bf16Kernels(), RunsAvx512Bf16},
                                               {&kAvx512Kernels, RunsAvx512},
                                               {&kAvx2Kernels, RunsAvx2},
                                               {&kPortableKernels, [] { return true; }}}};
  return levels;
}

// The fastest first. Intel's cores run VDPBF16PS at a quarter of the rate of VFMADD for twice the products,
// so there the level without it is ahead; AMD's run both at the same rate.
std::vector<const KernelTable*> Kernels(bool supported) {
  std::vector<const KernelTable*> found;
  for (const Level& level : Levels()) {
    if (level.runs() == supported) found.push_back(level.kernels);
  }
  if (__builtin_cpu_is("intel")) {
    const KernelTable* const slower_first[] = {&Avx512Bf16Kernels(), &kAvx512Kernels};
    const auto at = std::search(found.begin(), found.end(), std::begin(slower_first), std::end(slower_first));
    if (at != found.end()) std::iter_swap(at, at + 1);
  }
  return found;
}

}  // namespace

KernelTable AmxKernelsWith(const char* name, void (*matmul)(const MatmulArgs& args)) {
  return Avx512KernelsWith(name, kTilePanelRows, Bf16Arithmetic::kTiles, matmul);
}

std::vector<const KernelTable*> SupportedKernels() { return Kernels(true); }
std::vector<const KernelTable*> UnsupportedKernels() { return Kernels(false); }

std::vector<std::string> KernelChoices() {
  std::vector<std::string> names = {"auto", "reference"};
  for (const Level& level : Levels()) names.push_back(level.kernels->name);
  return names;
}

absl::StatusOr<const KernelTable*> ChooseKernels(std::string_view name) {
  if (name == "auto") return SupportedKernels().front();
  std::string names = "auto, reference";
  for (const Level& level : Levels()) {
    names = StrCat(names, ", ", level.kernels->name);
    if (name != level.kernels->name) continue;
    if (level.runs()) return level.kernels;
    return absl::UnimplementedError(StrCat("this processor does not run the ", name, " kernels"));
  }
  return absl::InvalidArgumentError(StrCat("kernels \"", name, "\", must be one of ", names));
}

}  // namespace baton
