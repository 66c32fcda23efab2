// make_tiny_model llama|gemma3 SEED DIRECTORY: writes a tiny random model and prints its path.
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "tests/support/tiny_model.h"

int main(int argc, char** argv) {
  const std::string_view architecture = argc == 4 ? argv[1] : "";
  if (architecture != "llama" && architecture != "gemma3") {
    std::cerr << "usage: make_tiny_model llama|gemma3 SEED DIRECTORY\n";
    return 2;
  }
  std::cout << baton::WriteTinyModel(
                   architecture == "llama" ? baton::Architecture::kLlama : baton::Architecture::kGemma3,
                   std::strtoull(argv[2], nullptr, 10), argv[3])
            << "\n";
  return 0;
}
