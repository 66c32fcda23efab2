"""C++ stubs from .proto files with the system's protoc and gRPC plugin."""

def _stubs_impl(ctx):
    suffix = ".grpc.pb" if ctx.attr.services else ".pb"
    headers = []
    sources = []
    for src in ctx.files.srcs:
        stem = src.path[len("proto/"):-len(".proto")]
        headers.append(ctx.actions.declare_file(stem + suffix + ".h"))
        sources.append(ctx.actions.declare_file(stem + suffix + ".cc"))
    out = ctx.bin_dir.path + "/proto"
    if ctx.attr.services:
        plugin = ["--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin", "--grpc_out=" + out]
    else:
        plugin = ["--cpp_out=" + out]
    ctx.actions.run(
        executable = "/usr/bin/protoc",
        arguments = ["--proto_path=proto", "--proto_path=/usr/include"] + plugin + [src.path for src in ctx.files.srcs],
        inputs = ctx.files.srcs + ctx.files.imports,
        outputs = headers + sources,
        mnemonic = "Protoc",
        progress_message = "Generating C++ from %{label}",
    )
    return [
        DefaultInfo(files = depset(headers + sources)),
        OutputGroupInfo(headers = depset(headers), sources = depset(sources)),
    ]

_stubs = rule(
    implementation = _stubs_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".proto"]),
        "imports": attr.label_list(allow_files = [".proto"]),
        "services": attr.bool(),
    },
)

def _stubs_library(name, srcs, imports, services, deps, **kwargs):
    _stubs(name = name + "_stubs", srcs = srcs, imports = imports, services = services)
    native.filegroup(name = name + "_headers", srcs = [":" + name + "_stubs"], output_group = "headers")
    native.filegroup(name = name + "_sources", srcs = [":" + name + "_stubs"], output_group = "sources")
    native.cc_library(
        name = name,
        srcs = [":" + name + "_sources"],
        hdrs = [":" + name + "_headers"],
        strip_include_prefix = "/proto",
        copts = ["-w"],
        deps = deps,
        **kwargs
    )

def cc_proto(name, srcs, imports = [], deps = [], **kwargs):
    """The messages of `srcs`, files of //proto, included by their path below proto/: "baton/v1/types.pb.h"."""
    _stubs_library(name, srcs, imports, False, deps + ["//third_party:protobuf"], **kwargs)

def cc_grpc(name, srcs, imports = [], deps = [], **kwargs):
    """The services of `srcs`; `deps` holds the cc_proto targets of the same files and of what they import."""
    _stubs_library(name, srcs, imports, True, deps + ["//third_party:grpc"], **kwargs)
