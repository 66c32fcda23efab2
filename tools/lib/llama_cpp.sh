# shellcheck shell=bash
# llama.cpp, which the bench compares Baton with: built here from the sources that PyPI serves, for this very processor, with
# its own defaults.

llama_cpp_release=0.3.36 # of llama-cpp-python, whose archive carries llama.cpp
llama_cpp_sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

# Its programs, set by llama_cpp.
llama_server='' llama_cpp_engine=''

# llama_cpp ENGINE_SOURCE: makes llama-server, and ENGINE_SOURCE linked with libllama.
# shellcheck disable=SC2034
llama_cpp() {
  # Another processor, or another engine source, is another build.
  local features folder
  features=$(grep -m1 '^flags' /proc/cpuinfo | tr ' ' '\n' | sort | sha256sum | head -c 8)
  folder=$tool_bin/llama_cpp-$llama_cpp_release-$features
  [ -x "$folder/bin/llama-server" ] || locked tools build_llama_cpp "$folder"
  llama_server=$folder/bin/llama-server
  llama_cpp_engine=$folder/bin/llama_cpp_engine-$(sha256sum <"$1" | head -c 8)
  [ -x "$llama_cpp_engine" ] || locked tools build_llama_cpp_engine "$folder" "$1" "$llama_cpp_engine"
}

# Its archive holds a build system that pip asks for the version, so that is pinned and installed too.
fetch_llama_cpp() {
  pip_install packaging==25.0 29572ef2b1f17581046b3a2227d5c611fb25ec70ca1ba8554b24b0e69331a484
  pip_install pathspec==0.12.1 a0d503e138a4c123b27490a4f7beda6a01c6f288df0e4a8b79c7eb0dc7b4cc08
  pip_install scikit-build-core==0.10.7 5e13ab7ca7c3c6dd019607c3a6f53cba67dade8757c4c4f75b459e2f90e4dbc3
  "$python_env/bin/pip" download -q --no-deps --no-cache-dir --no-binary :all: --no-build-isolation --require-hashes \
    -d "$1" -r <(printf 'llama-cpp-python==%s --hash=sha256:%s\n' "$llama_cpp_release" "$llama_cpp_sha256") ||
    die "llama.cpp could not be fetched from the Python package index; when the network is back, run this again"
  tar -xzf "$1"/llama_cpp_python-*.tar.gz -C "$1" --strip-components=3 --wildcards '*/vendor/llama.cpp/*'
  rm "$1"/llama_cpp_python-*.tar.gz
}

build_llama_cpp() {
  [ -x "$1/bin/llama-server" ] && return # another run was faster
  local incoming=$tool_bin/incoming off
  say "fetching llama.cpp, 77 MB, and building it for this processor (ten minutes, once)"
  rm -rf "$incoming" "$1"
  mkdir -p "$incoming/source"
  fetch_llama_cpp "$incoming/source"
  off=(-DLLAMA_BUILD_{TESTS,EXAMPLES,APP,UI} -DLLAMA_{USE_PREBUILT_UI,OPENSSL,ALL_WARNINGS})
  {
    cmake -S "$incoming/source" -B "$incoming/build" -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON \
      -DCMAKE_BUILD_RPATH_USE_ORIGIN=ON "${off[@]/%/=OFF}" &&
      cmake --build "$incoming/build" --target llama-server --parallel "$(build_jobs)"
  } >"$incoming/log" 2>&1 || {
    tail -n 20 "$incoming/log" >&2
    die "llama.cpp could not be built"
  }
  mkdir "$incoming/whole"
  mv "$incoming/build/bin" "$incoming/source/include" "$incoming/whole"
  cp "$incoming/source/ggml/include/"*.h "$incoming/whole/include"
  mv "$incoming/whole" "$1"
  rm -rf "$incoming"
}

build_llama_cpp_engine() {
  [ -x "$3" ] && return
  say "building $2 with llama.cpp"
  g++ -std=c++20 -O2 -I"$1/include" "$2" -o "$3.new" -L"$1/bin" -lllama -lggml -lggml-base "-Wl,-rpath,\$ORIGIN"
  mv "$3.new" "$3"
}
