// Runs a fuzz target over every file of the folders named as arguments; fails when there is none.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

int Replay(const std::filesystem::path& folder) {
  int files = 0;
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_regular_file(error)) continue;
    std::ifstream in(entry->path(), std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(in), {});
    std::printf("%s: %zu bytes\n", entry->path().c_str(), bytes.size());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    ++files;
  }
  if (error) std::printf("%s: %s\n", folder.c_str(), error.message().c_str());
  return error ? 0 : files;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const int files = Replay(argv[i]);
    std::printf("%s: %d files replayed\n", argv[i], files);
    if (files == 0) return 1;
  }
  return argc > 1 ? 0 : 1;
}
