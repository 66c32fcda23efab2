"""Tests written in Python, for the system's python3: the stub of py_test asks for a `python`, which Debian has not."""

def python_test(name, src, args = [], data = [], **kwargs):
    """Runs `src` with `args`; it fails with the exit status of the script."""
    native.sh_test(
        name = name,
        srcs = ["//bazel:python3.sh"],
        args = ["$(rootpath %s)" % src] + args,
        data = [src] + data,
        **kwargs
    )
