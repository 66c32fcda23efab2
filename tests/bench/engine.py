"""Engine against engine: the same commands to Baton's and to llama.cpp's, one after the other, round after round.

Both run with as many threads, on the same file, and stop at the logits on the host. The machine's speed changes within
minutes, so that only the ratio within a round says anything; a figure is the median of those ratios. What the machine can
read and multiply at most is measured in the same rounds.
"""

import json
import os
import subprocess
import tempfile
import threading
import time

import figures
import processes

CONTEXT_TOKENS = 2304
# Of each model: (name, command).
CASES = {
    "smollm2": (
        ("prefill 512", "prefill 512"),
        ("prefill 2,048", "prefill 2048"),
        ("decode, 1 stream, depth 64", "decode 64 1 32"),
        ("decode, 1 stream, depth 2,048", "decode 2048 1 32"),
        ("decode, 8 streams, depth 64", "decode 64 8 16"),
        ("decode, 32 streams, depth 64", "decode 64 32 8"),
    ),
    "gemma3": (
        ("prefill 512", "prefill 512"),
        ("decode, 1 stream, depth 64", "decode 64 1 32"),
    ),
}
# Between two commands: threads that spin for a while after their work must not slow the other engine.
PAUSE_SECONDS = 0.03


def roof(baton):
    read = baton.ask("read_roof")
    gemm = baton.ask("gemm_roof")
    return {
        "read_gb_s": read["gigabytes_per_second"],
        "int8_gops": gemm["int8_gops"],
        "f32_gflops": gemm["f32_gflops"],
    }


def one_round(engines, command, baton_first):
    """Tokens per second of each engine; which goes first alternates."""
    rates = {}
    for name in ("baton", "llama_cpp") if baton_first else ("llama_cpp", "baton"):
        time.sleep(PAUSE_SECONDS)
        rates[name] = engines[name].ask(command)["tokens_per_second"]
    return rates


def paired(engines, cases, rounds, say):
    """The rounds of every case and of the roof. Round 0 warms up: it is dropped."""
    results = {name: [] for name, _ in cases}
    roofs = []
    for index in range(rounds + 1):
        measured = {}
        for name, command in cases:
            measured[name] = one_round(engines, command, baton_first=index % 2 == 0)
        if index == 0:
            continue
        roofs.append(roof(engines["baton"]))
        for name, rates in measured.items():
            results[name].append(rates)
        say(
            "  round %d of %d: %s"
            % (index, rounds, ", ".join("%.2f" % (r["baton"] / r["llama_cpp"]) for r in measured.values()))
        )
    return results, roofs


def agreement(binaries, engine, golden, tokens_file, folder):
    """Of one engine with float32, over the golden file's teacher-forced tokens."""
    pipe = os.path.join(folder, "logits")
    os.mkfifo(pipe)
    try:
        with subprocess.Popen(
            [binaries["agreement"], golden, pipe, str(engine.ready["vocab_size"])], stdout=subprocess.PIPE, text=True
        ) as judge:
            asked = threading.Thread(target=engine.ask, args=("logits %s %s" % (tokens_file, pipe),))
            asked.start()
            output, _ = judge.communicate()
            asked.join()
            if judge.returncode != 0:
                raise processes.Failure("the agreement of %s could not be computed" % engine.name)
        return json.loads(output)
    finally:
        os.unlink(pipe)


def forced_tokens(golden):
    """The token ids of a golden file of teacher-forced tokens; tests/golden/README.md describes it."""
    with open(golden, "rb") as file:
        data = file.read()
    if data[:4] != b"BGTF":
        raise processes.Failure("%s is no file of teacher-forced tokens" % golden)
    count = int.from_bytes(data[8:12], "little")
    return [int.from_bytes(data[12 + 4 * i : 16 + 4 * i], "little") for i in range(count)]


def agreements(binaries, engines, golden):
    with tempfile.TemporaryDirectory() as folder:
        tokens_file = os.path.join(folder, "tokens")
        with open(tokens_file, "w", encoding="ascii") as file:
            file.write(" ".join(map(str, forced_tokens(golden))))
        return {name: agreement(binaries, engine, golden, tokens_file, folder) for name, engine in engines.items()}


def run_model(name, model, setup, rounds, say):
    binaries, threads = setup.binaries, setup.threads
    baton_command = [binaries["engine_bench"], "--model", model, "--threads", str(threads)]
    baton_command += ["--context-tokens", str(CONTEXT_TOKENS)]
    peer_command = [binaries["llama_cpp_engine"], model, str(threads), str(CONTEXT_TOKENS)]
    with processes.Engine(baton_command) as baton, processes.Engine(peer_command) as peer:
        engines = {"baton": baton, "llama_cpp": peer}
        golden = os.path.join(setup.root, "tests/golden/forced_%s.bin" % name)
        result = {"ready": {key: engine.ready for key, engine in engines.items()}}
        results, roofs = paired(engines, CASES[name], rounds, say)
        result["rounds"] = results
        result["roofs"] = roofs
        # Before the logits of whole prompts, which need memory that no use needs.
        result["memory"] = {key: engine.ask("rss") for key, engine in engines.items()}
        result["agreement"] = agreements(binaries, engines, golden)
    result["cases"] = [
        {
            "name": case,
            "ratio": figures.median_ratio(of_case, "baton", "llama_cpp"),
            "baton": figures.median_of(of_case, "baton"),
            "llama_cpp": figures.median_of(of_case, "llama_cpp"),
        }
        for case, of_case in results.items()
    ]
    result["roof"] = {key: figures.median_of(roofs, key) for key in roofs[0]} if roofs else {}
    return result


def run(setup, say):
    results = {}
    for name, model in setup.models.items():
        say("engine: %s" % name)
        results[name] = run_model(name, model, setup, setup.rounds, say)
    return results
