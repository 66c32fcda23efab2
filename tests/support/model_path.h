#ifndef BATON_TESTS_SUPPORT_MODEL_PATH_H_
#define BATON_TESTS_SUPPORT_MODEL_PATH_H_

#include <string>
#include <string_view>

namespace baton {

// The path of a real model's file, in the folder that the environment variable BATON_MODELS names (tools/test
// sets it and fetches the files). Where the file is not there the calling test fails with a text that says
// how to get it, and the path that comes back does not exist.
std::string ModelPath(std::string_view file);

inline constexpr std::string_view kSmolLm2File = "SmolLM2-135M-Instruct.Q4_1.gguf";
inline constexpr std::string_view kGemma3File = "gemma-3-270m.Q4_K_M.gguf";

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_MODEL_PATH_H_
