"""The whole product against llama.cpp's server: the same requests at the same times, over a sweep of rates.

Baton is `baton up` as it starts by default: a prefill and a decode worker that share the processor's cores. llama.cpp's
server has as many threads. A rate is offered to one, then to the other, each started anew. Prompts and outputs are of mixed
length; a request is cancelled when it could no longer keep the loosest objective.
"""

import json
import os
import tempfile

import figures
import http_load
import processes

SEED = 20
VOCAB_SIZE = 49152  # of SmolLM2
SLOTS = 16  # of llama.cpp's server, that share its threads
SLOT_TOKENS = 2048
WARMUP = 2
# The loosest objective allows no answer that takes longer: 2 s and 150 tokens of 100 ms and half as many again.
TIMEOUT_SECONDS = 25


def make_requests(seed, count):
    return [
        (figures.prompt_ids(seed * 1000003 + index, prompt, VOCAB_SIZE), output)
        for index, (prompt, output) in enumerate(figures.mixed_lengths(seed, count))
    ]


def write_prompts(path, requests):
    with open(path, "w", encoding="ascii") as file:
        for prompt, output in requests:
            line = {"tokens": {"ids": prompt}, "stopping": {"max_tokens": output, "ignore_eos": True}}
            file.write(json.dumps(line) + "\n")


def measures(requests, gaps_summary, offered_seconds, memory_bytes):
    good = [request for request in requests if request["ok"]]
    return {
        "requests": len(requests),
        "ended_well": len(good),
        "ttft_ms": figures.summary([request["ttft_ms"] for request in good if request["ttft_ms"] is not None]),
        "tpot_ms": figures.summary([request["tpot_ms"] for request in good if request["tpot_ms"] is not None]),
        "itl_ms": gaps_summary,
        "goodput": figures.goodput(requests, offered_seconds),
        "rss_bytes": memory_bytes,
    }


def baton_at(setup, model, requests, rate, folder):
    prompts = os.path.join(folder, "prompts.jsonl")
    write_prompts(prompts, requests[-WARMUP:] + requests)
    with processes.Baton(setup.binaries, model) as baton:
        report = processes.bench(
            *(
                setup.binaries,
                baton.address,
                "--prompts",
                prompts,
                "--rate",
                str(rate),
                "--requests",
                str(len(requests)),
            ),
            *("--warmup", str(WARMUP), "--load-seed", str(SEED), "--timeout", "%ds" % TIMEOUT_SECONDS),
        )
        memory = baton.memory_bytes()
    seen = [
        {"ok": detail["status"] == "OK", "ttft_ms": detail["ttft_ms"], "tpot_ms": detail["tpot_ms"]}
        for detail in report["details"]
    ]
    offered = figures.arrivals(rate, SEED, len(requests))[-1]
    return measures(seen, report["baton"]["itl_ms"], offered, memory)


def llama_cpp_at(setup, model, requests, rate):
    with processes.LlamaServer(setup.binaries["llama-server"], model, setup.threads, SLOTS, SLOT_TOKENS) as server:
        http_load.run(server.port, requests[-WARMUP:], 100.0, SEED, TIMEOUT_SECONDS)
        records = http_load.run(server.port, requests, rate, SEED, TIMEOUT_SECONDS)
        memory = server.memory_bytes()
    gaps = [gap for record in records if record.ok for gap in record.gaps_ms()]
    offered = figures.arrivals(rate, SEED, len(requests))[-1]
    return measures([record.result() for record in records], figures.summary(gaps), offered, memory)


def run(setup, say):
    model = setup.models["smollm2"]
    points = []
    with tempfile.TemporaryDirectory() as folder:
        for rate in setup.rates:
            requests = make_requests(SEED, max(setup.least_requests, round(rate * setup.window_seconds)))
            point = {"rate": rate}
            say("serving: %g requests/s, %d requests" % (rate, len(requests)))
            point["baton"] = baton_at(setup, model, requests, rate, folder)
            point["llama_cpp"] = llama_cpp_at(setup, model, requests, rate)
            for name in ("baton", "llama_cpp"):
                say(
                    "  %-9s goodput %s" % (name, ", ".join("%s %.2f" % item for item in point[name]["goodput"].items()))
                )
            points.append(point)
    return {
        "load": {"prompts": figures.PROMPT_QUANTILES, "outputs": figures.OUTPUT_QUANTILES, "seed": SEED},
        "objectives": figures.OBJECTIVES,
        "points": points,
    }
