"""Fuzz targets: the same LLVMFuzzerTestOneInput as a libFuzzer binary and as a test that replays a checked-in corpus."""

def fuzz_target(name, srcs, corpus, deps):
    """Declares `name`, the libFuzzer binary, and `name`_replay, the test.

    bazel build --config=fuzz //tests/fuzz:NAME, then run the binary with a scratch folder and the corpus folder. Input
    that found something goes into the corpus under a name that says what it is.

    Args:
      name: of the binary; it is built only when asked for by name.
      srcs: define LLVMFuzzerTestOneInput.
      corpus: a folder of this package; every file in it is one input.
      deps: of srcs.
    """
    native.cc_library(
        name = name + "_target",
        testonly = True,
        srcs = srcs,
        deps = deps,
        alwayslink = True,
    )
    native.cc_binary(
        name = name,
        testonly = True,
        # The linker is called as a C compiler, which leaves out the C++ half of the undefined-behaviour runtime.
        linkopts = [
            "-fsanitize=fuzzer",
            "-fsanitize-link-c++-runtime",
        ],
        tags = ["manual"],
        deps = [":" + name + "_target"],
    )
    native.cc_test(
        name = name + "_replay",
        size = "small",
        srcs = ["//tests/fuzz:replay_main.cc"],
        args = [native.package_name() + "/" + corpus],
        data = native.glob([corpus + "/**"]),
        deps = [":" + name + "_target"],
    )
