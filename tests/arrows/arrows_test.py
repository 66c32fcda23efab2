"""Who may include whom: one table, held against the sources, the BUILD files and Bazel itself."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Every folder of code and the folders that it may include; a file belongs to the longest name that it lies under.
# "engine" is the facade: the headers directly in engine/. Anything may include proto and common, and itself.
ARROWS = {
    "proto": [],
    "common": [],
    "engine/model_file": [],
    "engine/tokenizer": ["engine/model_file"],
    "engine/device": [],
    "engine/kv": ["engine/device"],
    "engine/ops": ["engine/device", "engine/kv", "engine/model_file"],
    "engine/model": ["engine/device", "engine/kv", "engine/model_file", "engine/ops"],
    "engine/sampling": [],
    "engine": [
        "engine/device",
        "engine/kv",
        "engine/model",
        "engine/model_file",
        "engine/ops",
        "engine/sampling",
        "engine/tokenizer",
    ],
    "kv_transfer": ["engine/device", "engine/kv"],
    "kv_transfer/backends": ["engine/device", "engine/kv", "kv_transfer"],
    "prefill_service": ["engine", "kv_transfer"],
    "decode_service": ["engine", "kv_transfer"],
    "router": ["engine/model_file", "engine/tokenizer"],
    "client": ["engine/model_file", "engine/tokenizer"],
}
EVERYBODY = ["proto", "common"]

# Single files that bend the table, and why.
EXTRA_FILES = {
    "engine/token.h": list(ARROWS),  # the token id's type: a word of the vocabulary, it includes nothing
}
# A service's main is where its backends are linked in.
EXTRA_INCLUDERS = {
    "prefill_service/main.cc": ["kv_transfer/backends", "engine/device"],
    "decode_service/main.cc": ["kv_transfer/backends", "engine/device"],
}
# Tests may lean on what is made for tests, and kv_transfer's on its backends; tests/ itself may include anything.
FOR_TESTS = ("tests/support", "tests/golden")

# Packages that are open to all.
PUBLIC_PACKAGES = ["proto", "common", "third_party", "bazel", "bazel/rules_cc/cc", "bazel/remote_coverage_tools"]

GENERATED = ("baton/v1/", "google/rpc/", "grpc/health/v1/")


def folder_of(path, table=tuple(ARROWS) + ("tests",)):
    inside = [folder for folder in table if path.startswith(folder + "/")]
    return max(inside, key=len) if inside else None


def product_files(suffixes):
    for folder in sorted({folder.split("/")[0] for folder in ARROWS} | {"tests"}):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.name.endswith(suffixes):
                yield path.relative_to(ROOT).as_posix()


def includes_of(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    for included in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text, re.MULTILINE):
        yield "proto/" + included if included.startswith(GENERATED) else included


def is_allowed(path, included):
    source, target = folder_of(path), folder_of(included)
    if source == "tests" or included in EXTRA_FILES and source in EXTRA_FILES[included]:
        return True
    if included.startswith(FOR_TESTS):
        return path.endswith(("_test.cc", "_test.h"))
    if source == "kv_transfer" and target == "kv_transfer/backends":
        return path.endswith(("_test.cc", "_test.h"))
    allowed = EVERYBODY + [source] + ARROWS[source] + EXTRA_INCLUDERS.get(path, [])
    if target == "proto" and source not in ("proto", "common"):
        return True
    if source == "common" and target == "proto":
        return True
    return target in allowed and not (source == "proto" and target == "common")


class Includes(unittest.TestCase):
    def test_every_include_follows_an_arrow(self):
        seen = 0
        wrong = []
        for path in product_files((".cc", ".h")):
            self.assertIsNotNone(folder_of(path), "%s lies in no folder of the table" % path)
            for included in includes_of(path):
                if folder_of(included) is None:
                    self.assertFalse((ROOT / included).exists(), "%s includes %s" % (path, included))
                    continue
                seen += 1
                if not is_allowed(path, included):
                    wrong.append("%s includes %s" % (path, included))
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 50)

    def test_the_table_refuses(self):
        for path, included in [
            ("router/a.cc", "engine/kv/block_pool.h"),
            ("router/a.cc", "kv_transfer/handoff.h"),
            ("prefill_service/a.cc", "decode_service/decode_scheduler.h"),
            ("prefill_service/a.cc", "engine/model/transformer.h"),
            ("prefill_service/a.cc", "kv_transfer/backends/grpc/backend.h"),
            ("kv_transfer/a.cc", "engine/model/transformer.h"),
            ("common/a.h", "engine/device/device.h"),
            ("engine/kv/a.cc", "engine/ops/ops.h"),
            ("client/a.cc", "router/generate_call.h"),
            ("router/a.cc", "tests/support/tiny_model.h"),
        ]:
            self.assertFalse(is_allowed(path, included), "%s -> %s" % (path, included))


def libraries():
    """Every cc_library of the tree as (package, name)."""
    for path in product_files(("BUILD.bazel",)):
        package = os.path.dirname(path)
        for name in re.findall(r'^cc_(?:library|proto|grpc)\(\s*name = "([^"]+)"', (ROOT / path).read_text(), re.MULTILINE):
            yield package, name


class Visibility(unittest.TestCase):
    def test_packages_are_private_by_default(self):
        for path in product_files(("BUILD.bazel",)):
            text = (ROOT / path).read_text(encoding="utf-8")
            if os.path.dirname(path) not in PUBLIC_PACKAGES:
                self.assertTrue('default_visibility = ["//visibility:private"]' in text, path + " is not private by default")
                self.assertFalse("//visibility:public" in text, path + " opens a target to all")

    def test_bazel_refuses_what_the_table_refuses(self):
        """Adds a package beside the real ones that depends on all it must not, and lets Bazel say no to each."""
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as scratch:
            tree = pathlib.Path(scratch, "tree")
            self.copy_build_files(tree)
            expected = set()
            for source in ARROWS:
                expected |= self.add_probes(tree, source)
            self.assertGreater(len(expected), 50)
            packages = sorted({label.split(":")[0] + ":all" for label, _ in expected})
            run = subprocess.run(
                ["bazel", "--batch", "--host_jvm_args=-Xmx600m", "--output_user_root=" + os.path.join(scratch, "out")]
                + ["build", "--nobuild", "--keep_going", "--noshow_progress", "--color=no"]
                + packages,
                cwd=tree,
                env=dict(os.environ, HOME=scratch),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            refused = {
                (source, target)
                for target, source in re.findall(r"target '([^']+)' is not visible from target '([^']+)'", run.stdout)
            }
            subprocess.run(["chmod", "-R", "u+w", scratch], check=False)
        accepted = sorted("%s <- %s" % (target, source) for source, target in expected - refused)
        self.assertEqual(len(accepted), 0, "Bazel lets these depend on each other:\n" + "\n".join(accepted))

    def copy_build_files(self, tree):
        wanted = ["WORKSPACE", ".bazelrc", "BUILD.bazel"]
        for top in ["bazel", "third_party"]:
            wanted += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / top).rglob("*")) if path.is_file()]
        for name in wanted + list(product_files(("BUILD.bazel", ".bzl"))):
            target = tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())

    def add_probes(self, tree, source):
        """Writes SOURCE/probe with one library for each forbidden dependency; returns the pairs to be refused."""
        pairs = set()
        text = []
        for package, name in libraries():
            target = folder_of(package + "/x")
            if target in ("tests", source) or target in EVERYBODY + ARROWS[source] or "%s/%s.h" % (package, name) in EXTRA_FILES:
                continue
            # Open to the package for the sake of one file, its main or a test; the includes of the others are checked above.
            if target in EXTRA_INCLUDERS.get(source + "/main.cc", []) or (source, target) == ("kv_transfer", "kv_transfer/backends"):
                continue
            probe = "%s_%s" % (package.replace("/", "_"), name)
            text.append('cc_library(name = "%s", testonly = True, deps = ["//%s:%s"])\n' % (probe, package, name))
            pairs.add(("//%s/probe:%s" % (source, probe), "//%s:%s" % (package, name)))
        folder = tree / source / "probe"
        folder.mkdir(parents=True)
        (folder / "BUILD.bazel").write_text("".join(text))
        return pairs


if __name__ == "__main__":
    unittest.main()
