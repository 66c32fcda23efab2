"""How long a handoff takes by the prompt's length: by itself, against memcpy and a raw socket, and within the product.

By itself: handoff_bench moves KV that is all computed. Within the product most layers cross while later ones compute, and
what counts is what is left: from the last layer computed to the commit accepted, as `timings` reports it.
"""

import json

import figures
import processes

LENGTHS = (64, 256, 512, 1024, 2000)


def alone(setup, rounds):
    output = processes.run([setup.binaries["handoff_bench"], str(rounds)] + [str(length) for length in LENGTHS])
    rows = [json.loads(line) for line in output.splitlines()]
    results = []
    for length in LENGTHS:
        of_length = [row for row in rows if row["tokens"] == length]
        row = {"tokens": length, "bytes": of_length[0]["bytes"]}
        for name in ("handoff_ms", "memcpy_ms", "socket_ms"):
            row[name] = figures.median_of(of_length, name)
        row["to_socket"] = figures.median_ratio(of_length, "handoff_ms", "socket_ms")
        row["to_memcpy"] = figures.median_ratio(of_length, "handoff_ms", "memcpy_ms")
        results.append(row)
    return results


def within(setup, requests):
    rows = []
    with processes.Baton(setup.binaries, setup.models["smollm2"]) as baton:
        for length in LENGTHS:
            report = processes.bench(
                *(setup.binaries, baton.address, "--streams", "1", "--requests", str(requests), "--warmup", "2"),
                *("--input-tokens", str(length), "--max-tokens", "2"),
            )["baton"]
            rows.append(
                {
                    "tokens": length,
                    "ttft_ms": report["router_ttft_ms"]["p50"],
                    "handoff_ms": report["handoff_ms"]["p50"],
                    "handoff_p99_ms": report["handoff_ms"]["p99"],
                    # What the client sees against what the router says.
                    "client_ttft_ms": report["ttft_ms"]["p50"],
                }
            )
    return rows


def run(setup, say):
    result = {"alone": alone(setup, setup.handoff_rounds), "within": within(setup, setup.handoff_requests)}
    for row in result["alone"]:
        say(
            "handoff: %(tokens)d tokens, %(bytes)d bytes: %(handoff_ms).2f ms, socket %(socket_ms).2f ms, memcpy %(memcpy_ms).2f ms"
            % row
        )
    for row in result["within"]:
        say("handoff: %(tokens)d tokens in the product: %(handoff_ms).2f ms of a TTFT of %(ttft_ms).1f ms" % row)
    return result
