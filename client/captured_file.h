#ifndef BATON_CLIENT_CAPTURED_FILE_H_
#define BATON_CLIENT_CAPTURED_FILE_H_

#include <cstdio>
#include <string>

namespace baton {

// A file without a name for code that writes to, or reads from, a stream.
class CapturedFile {
 public:
  explicit CapturedFile(const std::string& content = "") : file_(std::tmpfile()) {
    std::fwrite(content.data(), 1, content.size(), file_);
    std::rewind(file_);
  }
  ~CapturedFile() { std::fclose(file_); }
  CapturedFile(const CapturedFile&) = delete;
  CapturedFile& operator=(const CapturedFile&) = delete;

  std::FILE* get() { return file_; }

  // All that was written.
  std::string Text() {
    std::fflush(file_);
    std::string text(static_cast<size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }

 private:
  std::FILE* const file_;
};

}  // namespace baton

#endif  // BATON_CLIENT_CAPTURED_FILE_H_
