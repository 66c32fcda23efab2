"""Tests written in Python: the stub of py_test asks for a `python`, which Debian has not."""

# What a deployment runs, in the order in which scripts take their paths.
SERVICES = [
    "//router:baton_router",
    "//prefill_service:baton_prefill",
    "//decode_service:baton_decode",
]

def python_test(name, src, programs = [], args = [], data = [], grpc = False, **kwargs):
    """Runs `src`; it fails with the exit status of the script.

    Args:
      name: of the test.
      src: the script.
      programs: targets whose paths are its first arguments.
      args: follow them.
      data: what else it reads, `src` among it or not.
      grpc: whether its Python has gRPC: that of BATON_PYTHON, else the system's.
      **kwargs: of every test.
    """
    native.sh_test(
        name = name,
        srcs = ["//bazel:python_with_grpc.sh" if grpc else "//bazel:python3.sh"],
        args = ["$(rootpath %s)" % path for path in [src] + programs] + args,
        data = [src] + programs + [path for path in data if path != src],
        **kwargs
    )
