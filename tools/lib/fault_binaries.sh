# shellcheck shell=bash disable=SC2034 # its callers use fault_binaries
# The programs that tests/faults drives.

# Builds them and sets fault_binaries to their paths, in the order in which the scripts of tests/faults take them.
build_fault_binaries() {
  local targets target built
  targets=(//client:baton //tests/support:make_tiny_model //router:baton_router //prefill_service:baton_prefill)
  targets+=(//decode_service:baton_decode)
  setup build fetch
  make_python_env
  python_grpc
  say "building (minutes the first time, a second when nothing has changed)"
  run_bazel build --config=release "${targets[@]}"
  built=$(bazel info bazel-bin --config=release 2>/dev/null)
  fault_binaries=()
  for target in "${targets[@]}"; do
    target=${target#//}
    fault_binaries+=("$built/${target/://}")
  done
}
