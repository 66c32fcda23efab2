#!/usr/bin/env bash
# Runs a release binary on an emulated processor that has AVX2 and no AVX-512: it must start and work there. An instruction of a
# higher level anywhere but in kernels that are chosen at run time ends it with SIGILL.
set -euo pipefail
binary=$1
command -v qemu-x86_64-static >/dev/null || {
  echo "qemu-x86_64-static is absent: run tools/test, which installs it"
  exit 1
}
version=$(qemu-x86_64-static -cpu max "$binary" --version)
echo "$version"
[[ $version == "baton "* ]]
