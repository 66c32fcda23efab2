"""What the router adds, with workers that compute nothing: the mock pair of mock_worker.

The same load goes to three addresses in turn: straight to the mock's own answers, through a bare gRPC proxy to them, and
through the router to the mock pair. What a way adds is its percentile less that of the straight one in the same round.

The most that each way carries is measured with answers that come at once; what it adds, with a worker's pace, at a share
of what the worker then serves to a full house.
"""

import contextlib
import time

import figures
import processes

# A short prompt, as ids, and a short answer.
SHAPE = ("--input-tokens", "32", "--max-tokens", "16", "--connections", "4")
CONNECTIONS = 4
STREAMS = 32
AT_ONCE = ("0", "0")
PACE = ("5", "5")  # milliseconds of prefill and of a step
LOAD = 0.6  # of what STREAMS at that pace amount to


@contextlib.contextmanager
def addresses(setup, model, pace):
    """Where each of the three listens, by name."""
    prefill, decode, direct, proxy, router = (processes.free_port() for _ in range(5))
    mock = [setup.binaries["mock_worker"], model, str(prefill), str(decode), str(direct), *pace]
    hop = [setup.binaries["proxy_hop"], str(proxy), str(direct), str(CONNECTIONS)]
    workers = ["--prefill", "127.0.0.1:%d" % prefill, "--decode", "127.0.0.1:%d" % decode]
    listen = ["--listen", "127.0.0.1:%d" % router, "--metrics-listen", "", "--log-level", "warning"]
    with contextlib.ExitStack() as stack:
        for command in (mock, hop):
            stack.enter_context(processes.Process(command)).await_line("ready")
        stack.enter_context(processes.Process([setup.binaries["baton_router"], "--model", model] + listen + workers))
        at = {"direct": direct, "proxy": proxy, "router": router}
        at = {name: "127.0.0.1:%d" % port for name, port in at.items()}
        await_ready(setup, at["router"])
        yield at


def await_ready(setup, address):
    deadline = time.monotonic() + 30
    while True:
        try:
            processes.bench(setup.binaries, address, "--requests", "1", "--warmup", "0", *SHAPE)
            return
        except processes.Failure:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def capacity(setup, address, requests):
    """Requests and messages per second of a closed load."""
    flags = ("--streams", str(STREAMS), "--requests", str(requests), "--warmup", "64")
    report = processes.bench(setup.binaries, address, *flags, *SHAPE)
    return {"requests_per_second": report["rps"], "messages_per_second": report["baton"]["output_tokens_per_second"]}


def at_rate(setup, address, rate, seed):
    flags = ("--rate", "%.3f" % rate, "--requests", str(max(200, round(rate * setup.router_seconds))))
    report = processes.bench(setup.binaries, address, *flags, "--warmup", "64", "--load-seed", str(seed), *SHAPE)
    return report["baton"]["ttft_ms"]


def run(setup, say):
    model = setup.models["smollm2"]
    with addresses(setup, model, AT_ONCE) as at:
        most = {name: capacity(setup, address, setup.router_requests) for name, address in at.items()}
        say("router: %.0f requests/s and %.0f messages/s at most" % tuple(most["router"].values()))
    rounds = []
    with addresses(setup, model, PACE) as at:
        served = capacity(setup, at["direct"], setup.router_requests)
        rate = LOAD * served["requests_per_second"]
        say("router: %.0f requests/s of the %.0f that the mock serves" % (rate, served["requests_per_second"]))
        for index in range(setup.rounds):
            ttft = {name: at_rate(setup, address, rate, 11 + index) for name, address in at.items()}
            one = {name: {point: values[point] for point in ("p50", "p99")} for name, values in ttft.items()}
            for name in ("proxy", "router"):
                for point in ("p50", "p99"):
                    one["%s_adds_%s" % (name, point)] = one[name][point] - one["direct"][point]
            rounds.append(one)
            say(
                "  round %d: router adds %.3f ms at p50, proxy %.3f ms"
                % (index + 1, one["router_adds_p50"], one["proxy_adds_p50"])
            )
    added = {key: figures.median_of(rounds, key) for key in rounds[0] if "_adds_" in key}
    ratios = {
        "ratio_" + point: figures.median_ratio(rounds, "router_adds_" + point, "proxy_adds_" + point)
        for point in ("p50", "p99")
    }
    return {"capacity": most, "served": served, "rate": rate, "load": LOAD, "rounds": rounds, **added, **ratios}
