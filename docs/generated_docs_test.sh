#!/usr/bin/env bash
# generated_docs_test.sh (GENERATOR PAGE)...: every page equals what its generator prints.
set -euo pipefail
while [ $# -gt 0 ]; do
  if ! diff -u "$2" <("$1"); then
    echo "$2 is not what its table says; write it anew with: bazel run //${1%/*}:${1##*/} > $2" >&2
    exit 1
  fi
  shift 2
done
