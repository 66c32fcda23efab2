#include "engine/model_file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "common/str_cat.h"

namespace baton {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  const int number_;
};

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return absl::ErrnoToStatus(errno, StrCat("cannot open ", path));
  struct stat status = {};
  if (fstat(file.number(), &status) != 0) return absl::ErrnoToStatus(errno, StrCat("cannot stat ", path));
  if (!S_ISREG(status.st_mode)) return absl::InvalidArgumentError(StrCat(path, " is not a regular file"));
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile();
  void* const address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.number(), 0);
  if (address == MAP_FAILED) return absl::ErrnoToStatus(errno, StrCat("cannot map ", path));
  return MappedFile(absl::MakeConstSpan(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace baton
