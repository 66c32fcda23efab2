#ifndef BATON_ENGINE_OPS_CPU_KERNEL_LEVELS_H_
#define BATON_ENGINE_OPS_CPU_KERNEL_LEVELS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ops/cpu/kernels.h"

namespace baton {

// The levels that this processor runs, the fastest first; the portable one is always there.
std::vector<const KernelTable*> SupportedKernels();
// The levels of this build that this processor does not run, the fastest first.
std::vector<const KernelTable*> UnsupportedKernels();

// What an option of kernels takes: "auto", "reference" (which is no level) and every level's name.
std::vector<std::string> KernelChoices();

// "auto" is the fastest level, else a level by its name. INVALID_ARGUMENT for a name that is none,
// UNIMPLEMENTED for a level that this processor does not run.
absl::StatusOr<const KernelTable*> ChooseKernels(std::string_view name);

// The AVX-512 level with a matmul of AMX, which takes panels of kTilePanelRows.
KernelTable AmxKernelsWith(const char* name, void (*matmul)(const MatmulArgs& args));

}  // namespace baton

#endif  // BATON_ENGINE_OPS_CPU_KERNEL_LEVELS_H_
