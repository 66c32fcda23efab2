"""clang-tidy over the sources of every C++ target that is not for tests alone, as build actions: what has not changed is not looked at again.

Clang's thread-safety analysis, which reads the annotations of common/mutex.h, runs with it.

    bazel build //... --aspects=//bazel:clang_tidy.bzl%clang_tidy --output_groups=clang_tidy
"""

def _flags(ctx, context):
    flags = ["-std=c++20", "-I.", "-Wno-everything", "-Wthread-safety"]
    for define in context.defines.to_list() + context.local_defines.to_list():
        flags.append("-D" + define)
    for folder in context.quote_includes.to_list() + context.includes.to_list() + context.system_includes.to_list():
        flags += ["-isystem", folder] if "_virtual_includes" in folder else ["-I" + folder]
    return flags + [option for option in ctx.rule.attr.copts if option.startswith("-m")]

def _clang_tidy_impl(target, ctx):
    if CcInfo not in target or not hasattr(ctx.rule.attr, "srcs"):
        return []
    if ctx.rule.kind == "cc_test" or ctx.rule.attr.testonly or "-w" in ctx.rule.attr.copts:
        return []
    context = target[CcInfo].compilation_context
    marks = []
    for source in ctx.rule.files.srcs:
        if source.extension != "cc" or not source.is_source:
            continue
        mark = ctx.actions.declare_file(ctx.label.name + "." + source.basename + ".clang_tidy")
        ctx.actions.run_shell(
            command = 'mark=$1 && shift && clang-tidy-19 --quiet "$@" 2>/dev/null && touch "$mark"',
            arguments = [mark.path, source.path, "--"] + _flags(ctx, context),
            inputs = depset([source] + ctx.rule.files.srcs + ctx.files._config, transitive = [context.headers]),
            outputs = [mark],
            mnemonic = "ClangTidy",
            progress_message = "clang-tidy %s" % source.short_path,
            use_default_shell_env = True,
        )
        marks.append(mark)
    return [OutputGroupInfo(clang_tidy = depset(marks))]

clang_tidy = aspect(
    implementation = _clang_tidy_impl,
    attrs = {"_config": attr.label(default = "//:.clang-tidy", allow_single_file = True)},
)
