"""Runs the parts of the bench that are asked for, prints a table, writes results.json. tools/bench calls it.

A run adds to the results.json that it finds: parts that do not run stay as they were, with the date of their own run.
"""

import argparse
import datetime
import json
import os
import sys
import time

import engine
import handoff
import interference
import machine
import processes
import render
import router
import serving

PARTS = {"engine": engine, "serving": serving, "interference": interference, "router": router, "handoff": handoff}


class Setup:
    """What every part is given: binaries and models by name, and how much to do."""

    def __init__(self, args):
        self.root = args.root
        self.binaries = dict(binary.split("=", 1) for binary in args.binary)
        self.models = dict(model.split("=", 1) for model in args.model)
        self.threads = args.threads
        self.rounds = args.rounds or (2 if args.quick else 5)
        self.rates = args.rates
        self.window_seconds = 5 if args.quick else 20
        self.least_requests = 4 if args.quick else 20
        self.interference_seconds = 2 if args.quick else 8
        self.interference_rounds = 1 if args.quick else 2
        self.router_requests = 500 if args.quick else 4000
        self.router_seconds = 1 if args.quick else 5
        self.handoff_rounds = 3 if args.quick else 30
        self.handoff_requests = 4 if args.quick else 20


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS])
    parser.add_argument("--root", required=True)
    parser.add_argument("--output", required=True, help="folder")
    parser.add_argument("--binary", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--model", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument(
        "--rates", type=lambda text: [float(rate) for rate in text.split(",")], default=[0.5, 1, 2, 3, 4, 6]
    )
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def say(text):
    print("-- " + text, flush=True)


def read_results(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {"parts": {}}


def write_results(path, results):
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


def run_part(name, setup):
    begin, load = time.monotonic(), machine.load_average()
    result = PARTS[name].run(setup, say)
    result["date"] = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    result["seconds"] = round(time.monotonic() - begin, 1)
    result["load_average_before"] = load
    return result


def main():
    args = parse_arguments()
    setup = Setup(args)
    path = os.path.join(args.output, "results.json")
    results = read_results(path)
    results["machine"] = machine.describe()
    results["threads"] = setup.threads
    say("machine: " + results["machine"]["name"])
    failed = []
    for name in args.parts or PARTS:
        try:
            results["parts"][name] = run_part(name, setup)
        except (processes.Failure, OSError) as failure:
            say("%s failed: %s" % (name, failure))
            failed.append(name)
            continue
        write_results(path, results)
        say("%s: %.0f s" % (name, results["parts"][name]["seconds"]))
    print(render.markdown(results))
    say("results: " + path)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
