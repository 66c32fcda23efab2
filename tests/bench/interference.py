"""What long prompts do to running answers: colocated without chunks, with chunks as they are by default, with chunks cut to
steps of 20 ms, and disaggregated.

Four streams decode for a while; beside them one prompt of 2,000 tokens is always being computed: when one is done, the next
comes. All ways use the same two cores: a colocated worker has a thread on each, a disaggregated pair one each.
"""

import math
import statistics

import processes

STREAMS = 4
LONG_PROMPT = 2000
STREAM_PROMPT = 64
LEAST_PROMPTS = 6  # beside the streams
MOST_STREAM_TOKENS = 1900  # what the context holds

# Flags of `baton up` for each way to serve.
COLOCATED = ("--prefill", "0", "--pin=false")
# Steps that last as long as a prompt take must not look like a worker that stands still.
WHOLE = (
    *("--decode-flags=--chunk-tokens=4096", "--decode-flags=--token-budget=4096", "--decode-flags=--step-target=10s"),
    *("--router-flags=--leg-silence=60s", "--router-flags=--step-stall=60s"),
)
WAYS = {
    "colocated, whole prompts": COLOCATED + WHOLE,
    "colocated, chunks": COLOCATED,
    "colocated, small chunks": COLOCATED + ("--decode-flags=--step-target=20ms",),
    "disaggregated": (),
}


def streams_flags(seconds):
    return (
        *("--streams", str(STREAMS), "--requests", str(STREAMS), "--warmup", "0", "--load-seed", "5"),
        *(
            "--input-tokens",
            str(STREAM_PROMPT),
            "--max-tokens",
            str(MOST_STREAM_TOKENS),
            "--time-limit",
            "%gs" % seconds,
        ),
    )


def long_flags(requests):
    return (
        *("--streams", "1", "--requests", str(requests), "--warmup", "0", "--load-seed", "6"),
        *("--input-tokens", str(LONG_PROMPT), "--max-tokens", "1"),
    )


def streams_part(report):
    if report["baton"]["itl_ms"] is None:
        raise processes.Failure(
            "the streams had no second token in time: the machine is too slow for this part, or too busy"
        )
    return {"itl_ms": report["baton"]["itl_ms"], "tokens_per_second": report["baton"]["output_tokens_per_second"]}


def run_way(setup, model, flags):
    threads = ("--threads", str(setup.threads)) if "--prefill" in flags else ()
    with processes.Baton(setup.binaries, model, *flags, *threads) as baton:
        at = setup.binaries, baton.address
        processes.bench(*at, *long_flags(1))
        processes.bench(*at, *streams_flags(0.5))
        alone = processes.bench(*at, *long_flags(3))["baton"]["ttft_ms"]
        # Several prompts in any case. None is faster beside streams than alone, so that these last as long as the streams.
        seconds = max(setup.interference_seconds, LEAST_PROMPTS * alone["p50"] / 1e3)
        # As long as beside them: the longer an answer, the longer its steps.
        result = {
            "long_alone_ttft_ms": alone["p50"],
            "streams_alone": streams_part(processes.bench(*at, *streams_flags(seconds))),
        }
        prompts = math.ceil(seconds * 1e3 / alone["p50"]) + 1
        with processes.background_bench(*at, *streams_flags(seconds)) as streams:
            beside = processes.bench(*at, *long_flags(prompts))["baton"]["ttft_ms"]
            result["streams_beside"] = streams_part(streams())
        result["long_beside_ttft_ms"] = beside["p50"]
    return result


def medians(rounds):
    """One row: the median over the rounds of each figure."""
    middle = lambda get: statistics.median(get(one) for one in rounds)
    row = {
        "long_alone_ttft_ms": middle(lambda one: one["long_alone_ttft_ms"]),
        "long_beside_ttft_ms": middle(lambda one: one["long_beside_ttft_ms"]),
    }
    for part in ("streams_alone", "streams_beside"):
        row[part] = {point: middle(lambda one: one[part]["itl_ms"][point]) for point in ("p50", "p99", "max")}
        row[part]["tokens_per_second"] = middle(lambda one: one[part]["tokens_per_second"])
    row["p99_ratio"] = middle(
        lambda one: one["streams_beside"]["itl_ms"]["p99"] / one["streams_alone"]["itl_ms"]["p99"]
    )
    return row


def run(setup, say):
    model = setup.models["smollm2"]
    rounds = {name: [] for name in WAYS}
    for index in range(setup.interference_rounds):
        for name, flags in WAYS.items():
            result = run_way(setup, model, flags)
            rounds[name].append(result)
            say(
                "interference: round %d, %s: ITL p99 %.1f ms alone, %.1f ms beside long prompts"
                % (index + 1, name, result["streams_alone"]["itl_ms"]["p99"], result["streams_beside"]["itl_ms"]["p99"])
            )
    return {
        "streams": STREAMS,
        "long_prompt": LONG_PROMPT,
        "rounds": rounds,
        "ways": {name: medians(of_way) for name, of_way in rounds.items()},
    }
