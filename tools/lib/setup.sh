# shellcheck shell=bash
# Installs what this machine lacks. Call: setup GROUP..., with groups of the list below.
#
# A need is recognised by the very command or file that is used, never by a package's name: however it came onto the
# machine, it counts. The package named beside it is what Debian 12 calls it.

needs='
build  command:bazel                                        bazel-bootstrap
build  file:/usr/share/bazel/platforms                      bazel-platforms
build  file:/usr/share/bazel/rules/java                     bazel-rules-java
build  file:/usr/share/bazel/rules/proto                    bazel-rules-proto
build  command:g++                                          g++
build  command:protoc                                       protobuf-compiler
build  command:grpc_cpp_plugin                              protobuf-compiler-grpc
build  header:absl/status/statusor.h                        libabsl-dev
build  header:google/protobuf/message.h                     libprotobuf-dev
build  header:grpcpp/grpcpp.h                               libgrpc++-dev
build  header:spdlog/spdlog.h                               libspdlog-dev
build  header:fmt/core.h                                    libfmt-dev
build  header:prometheus/registry.h                         prometheus-cpp-dev
build  header:CLI/CLI.hpp                                   libcli11-dev
build  header:nlohmann/json.hpp                             nlohmann-json3-dev
build  header:pcre2.h                                       libpcre2-dev
build  header:unicode/normalizer2.h                         libicu-dev
build  header:xxhash.h                                      libxxhash-dev
build  header:ncurses.h                                     libncurses-dev
build  header:openssl/sha.h                                 libssl-dev
build  header:benchmark/benchmark.h                         libbenchmark-dev
build  header:gtest/gtest.h                                 libgtest-dev
build  header:gmock/gmock.h                                 libgmock-dev
fetch  command:python3                                      python3
fetch  python:ensurepip                                     python3-venv
bench  command:cmake                                        cmake
bench  command:make                                         make
test   command:qemu-x86_64-static                           qemu-user-static
check  command:clang-format-19                              clang-format-19
check  command:clang-tidy-19                                clang-tidy-19
check  command:shellcheck                                   shellcheck
fuzz   command:clang-14                                     clang-14
fuzz   file:/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux     libclang-rt-14-dev
'

have() {
  local kind=${1%%:*} what=${1#*:}
  case $kind in
    command) command -v "$what" >/dev/null ;;
    file) [ -e "$what" ] ;;
    header) [ -e "/usr/include/$what" ] || [ -e "/usr/include/x86_64-linux-gnu/$what" ] ;;
    python) command -v python3 >/dev/null && python3 -c "import $what" 2>/dev/null ;;
  esac
}

# Prints the packages of the given groups whose commands or files are absent, one per line.
missing() {
  local group need package
  while read -r group need package; do
    if [ -n "$group" ] && [[ " $* " == *" $group "* ]] && ! have "$need"; then printf '%s\n' "$package"; fi
  done <<<"$needs"
}

setup() {
  local packages
  mapfile -t packages < <(missing "$@")
  [ "${#packages[@]}" -gt 0 ] || return 0
  local command="apt-get install --no-install-recommends ${packages[*]}"
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    die "this machine lacks what the build needs; install it with (names are Debian 12's): $command"
  fi
  say "installing from Debian: ${packages[*]}"
  local quiet=(-qq -o Dpkg::Use-Pty=0)
  apt-get "${quiet[@]}" update || die "apt-get update failed; when the network is back, run this again or: $command"
  DEBIAN_FRONTEND=noninteractive apt-get "${quiet[@]}" install -y --no-install-recommends "${packages[@]}" >/dev/null ||
    die "apt-get failed; what is needed: $command"
  mapfile -t packages < <(missing "$@")
  [ "${#packages[@]}" -eq 0 ] || die "still missing after apt-get install: ${packages[*]}"
}
