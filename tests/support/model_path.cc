#include "tests/support/model_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace baton {

std::string ModelPath(std::string_view file) {
  const char* const folder = std::getenv("BATON_MODELS");
  if (folder == nullptr) {
    ADD_FAILURE()
        << "BATON_MODELS does not name the folder of the models: run tools/test, which fetches them, or pass "
           "--test_env=BATON_MODELS=FOLDER";
    return "/nonexistent/" + std::string(file);
  }
  const std::string path = std::string(folder) + "/" + std::string(file);
  if (access(path.c_str(), R_OK) != 0) {
    ADD_FAILURE() << path << " is not there or not readable: run tools/test, which fetches it";
  }
  return path;
}

}  // namespace baton
