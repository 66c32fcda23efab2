# shellcheck shell=bash disable=SC2034 # not every script uses all of these
# Sourced by every script of tools/: where things are kept, and how a script speaks.

cache=${XDG_CACHE_HOME:-$HOME/.cache}/baton
models=$cache/models # downloaded models
tool_bin=$cache/tools # downloaded tools
disk_cache=$cache/bazel # build results, shared by all clones

say() { printf -- '-- %s\n' "$*"; }

die() {
  printf 'baton: %s\n' "$*" >&2
  exit 1
}

# Runs a command while no other script of this user runs one under the same lock.
locked() {
  local lock=$1
  shift
  mkdir -p "$cache"
  (
    flock -n 9 || { say "waiting for another run that holds $cache/$lock.lock" && flock 9; }
    "$@"
  ) 9>"$cache/$lock.lock"
}

# True when the file exists and has this SHA-256.
has_sha256() {
  [ -e "$2" ] && [ "$(sha256sum <"$2")" = "$1  -" ]
}
