# shellcheck shell=bash
# How the scripts of tools/ call Bazel.

# As many jobs as there are processors, but no more than memory holds: a file that includes gRPC takes 1 GB to compile.
build_jobs() {
  local processors gigabytes
  processors=$(nproc)
  gigabytes=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  [ "$gigabytes" -ge 1 ] || gigabytes=1
  printf '%s\n' "$((processors < gigabytes ? processors : gigabytes))"
}

# run_bazel VERB ARGUMENT...
run_bazel() {
  local progress=()
  [ -t 2 ] || progress=(--color=no --show_progress_rate_limit=15)
  bazel "$1" --disk_cache="$disk_cache" --jobs="$(build_jobs)" "${progress[@]}" "${@:2}"
}

# Forgets build results that nobody has asked for in a month.
prune_disk_cache() {
  [ ! -d "$disk_cache" ] || find "$disk_cache" -type f -atime +30 -delete
}

# Where nobody builds a second time, the Bazel server must not outlive the script.
end_bazel() {
  bazel shutdown >/dev/null 2>&1 || true
}
