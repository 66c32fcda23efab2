"""Says what the tests did: failures, skips, the ten slowest cases, and `N passed, N failed` as the last line.

Reads, from the folder given, what Bazel wrote for each build: NAME.json (its build events) and NAME.status (its exit status). A
target that does not build, a test that crashes or gives no result, and a Bazel that fails for any other reason all count as failures.
"""

import collections
import glob
import json
import os
import sys
import urllib.parse
import urllib.request
import xml.etree.ElementTree

Case = collections.namedtuple("Case", "build name seconds outcome message")

BAZEL_PASSED = 0
BAZEL_TESTS_FAILED = 3


def read_events(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def cases_in(build, label, result):
    """The cases of one run of one test target, from the JUnit file that it left."""
    found = []
    for output in result.get("testActionOutput", []):
        if output.get("name") != "test.xml":
            continue
        path = urllib.request.url2pathname(urllib.parse.urlparse(output["uri"]).path)
        try:
            root = xml.etree.ElementTree.parse(path).getroot()
        except (OSError, xml.etree.ElementTree.ParseError):
            continue
        for case in root.iter("testcase"):
            if case.get("status") == "notrun":
                continue
            outcome, message = "passed", ""
            for child in case:
                if child.tag in ("failure", "error", "skipped"):
                    outcome = "skipped" if child.tag == "skipped" else "failed"
                    message = child.get("message") or (child.text or "").strip()
                    break
            name = ".".join(part for part in (case.get("classname"), case.get("name")) if part)
            name = label if label.endswith(name) or name == label.lstrip("/").replace(":", "/") else label + " " + name
            found.append(Case(build, name, float(case.get("time") or 0), outcome, message))
    if result.get("status") != "PASSED" and not any(case.outcome == "failed" for case in found):
        seconds = float(result.get("testAttemptDurationMillis", 0)) / 1000
        found.append(Case(build, label, seconds, "failed", "ended with " + result.get("status", "no status")))
    return found


def read_build(folder, build):
    """Every case of one build."""
    configured_tests, built, not_built, results = set(), set(), set(), {}
    for event in read_events(os.path.join(folder, build + ".json")):
        event_id = event.get("id", {})
        if "targetConfigured" in event_id and "testSize" in event.get("configured", {}):
            configured_tests.add(event_id["targetConfigured"]["label"])
        elif "targetCompleted" in event_id:
            label = event_id["targetCompleted"]["label"]
            (built if event.get("completed", {}).get("success") else not_built).add(label)
        elif "testResult" in event_id and "testResult" in event:
            key = event_id["testResult"]
            slot = (key["label"], key.get("run", 1), key.get("shard", 1))
            if key.get("attempt", 1) >= results.get(slot, (0, None))[0]:
                results[slot] = (key.get("attempt", 1), event["testResult"])
    cases = []
    for (label, _, _), (_, result) in sorted(results.items(), key=lambda item: item[0]):
        cases += cases_in(build, label, result)
    with_result = {slot[0] for slot in results}
    for label in sorted(not_built):
        cases.append(Case(build, label, 0, "failed", "did not build"))
    for label in sorted((configured_tests & built) - with_result):
        cases.append(Case(build, label, 0, "failed", "was not run"))
    with open(os.path.join(folder, build + ".status"), encoding="utf-8") as file:
        status = int(file.read())
    failed = any(case.outcome == "failed" for case in cases)
    if status != BAZEL_PASSED and not failed:
        cases.append(Case(build, "bazel", 0, "failed", "ended with exit status %d" % status))
    if status not in (BAZEL_PASSED, BAZEL_TESTS_FAILED) and not cases:
        cases.append(Case(build, "bazel", 0, "failed", "ran no test"))
    return cases


def count(cases, outcome):
    return sum(case.outcome == outcome for case in cases)


def main():
    folder = sys.argv[1]
    builds = [os.path.basename(path)[: -len(".status")] for path in glob.glob(os.path.join(folder, "*.status"))]
    cases = []
    for build in sorted(builds, key=["release", "asan", "tsan"].index):
        of_build = read_build(folder, build)
        print("-- %s: %d cases" % (build, len(of_build)))
        cases += of_build
    print("-- the slowest test cases:")
    for case in sorted(cases, key=lambda case: -case.seconds)[:10]:
        print("   %7.2f s  %-8s %s" % (case.seconds, case.build, case.name))
    for outcome in ("skipped", "failed"):
        for case in cases:
            if case.outcome == outcome:
                message = " ".join(case.message.split())[:200]
                print("-- %s in %s: %s: %s" % (outcome, case.build, case.name, message))
    passed, failed, skipped = (count(cases, outcome) for outcome in ("passed", "failed", "skipped"))
    print("%d passed, %d failed" % (passed, failed) + (", %d skipped" % skipped if skipped else ""))
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
