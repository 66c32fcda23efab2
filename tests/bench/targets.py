"""What the figures should be, and whether they are."""

# Speed relative to llama.cpp, (floor, aim), by the kind of machine; decided by what its processor has.
ENGINE = {
    "amx": {
        ("smollm2", "prefill 512"): (3, 5),
        ("smollm2", "prefill 2,048"): (4, 6),
        ("smollm2", "decode, 1 stream, depth 64"): (1.7, 2.3),
        ("smollm2", "decode, 1 stream, depth 2,048"): (4, 8),
        ("smollm2", "decode, 8 streams, depth 64"): (5, 8),
        ("smollm2", "decode, 32 streams, depth 64"): (8, 15),
        ("gemma3", "prefill 512"): (3, 5),
        ("gemma3", "decode, 1 stream, depth 64"): (1.5, 1.8),
    },
    "avx512": {
        ("smollm2", "prefill 512"): (4.5, 6.5),
        ("smollm2", "prefill 2,048"): (4, 6),
        ("smollm2", "decode, 1 stream, depth 64"): (1.8, 2.4),
        ("smollm2", "decode, 1 stream, depth 2,048"): (1.8, 2.8),
        ("smollm2", "decode, 8 streams, depth 64"): (4, 6),
        ("smollm2", "decode, 32 streams, depth 64"): (4, 6),
        ("gemma3", "prefill 512"): (2.5, 4),
        ("gemma3", "decode, 1 stream, depth 64"): (1.3, 1.6),
    },
}
ROUTER_ADDS_MS = {"p50": 0.15, "p99": 0.6}
P99_ITL_RATIO = 1.3


def machine_kind(features):
    """None for a machine without AVX-512, for which there are no targets."""
    if "amx_bf16" in features:
        return "amx"
    return "avx512" if "avx512_vnni" in features else None


def verdict(met, reached_aim=False):
    if not met:
        return "**missed**"
    return "aim reached" if reached_aim else "met"


def engine_rows(part, kind):
    rows = []
    for (model, case), (floor, aim) in ENGINE.get(kind, {}).items():
        for result in (result for result in part.get(model, {}).get("cases", []) if result["name"] == case):
            ratio = result["ratio"]
            rows.append(
                (
                    "%s: %s" % (model, case),
                    "%gx, aim %gx" % (floor, aim),
                    "%.2fx" % ratio,
                    verdict(ratio >= floor, ratio >= aim),
                )
            )
    for model, result in part.items():
        if not isinstance(result, dict):
            continue
        ours, theirs = result["agreement"]["baton"], result["agreement"]["llama_cpp"]
        rows.append(
            (
                "%s: mean KL to float32" % model,
                "at most llama.cpp's, %.2g" % theirs["kl_mean"],
                "%.2g" % ours["kl_mean"],
                verdict(ours["kl_mean"] <= theirs["kl_mean"]),
            )
        )
        rows.append(
            (
                "%s: argmax as float32's" % model,
                "at least llama.cpp's, %.1f %%" % (100 * theirs["argmax_agreement"]),
                "%.1f %%" % (100 * ours["argmax_agreement"]),
                verdict(ours["argmax_agreement"] >= theirs["argmax_agreement"]),
            )
        )
    return rows


def interference_rows(part):
    ratio = part["ways"]["disaggregated"]["p99_ratio"]
    return [
        (
            "p99 ITL beside long prompts, to that alone",
            "at most %gx" % P99_ITL_RATIO,
            "%.2fx" % ratio,
            verdict(ratio <= P99_ITL_RATIO),
        )
    ]


def router_rows(part):
    rows = []
    for point, most in ROUTER_ADDS_MS.items():
        added = part["router_adds_" + point]
        rows.append(
            (
                "router adds to TTFT, %s" % point,
                "at most %d us" % (most * 1e3),
                "%.0f us" % (added * 1e3),
                verdict(added <= most),
            )
        )
    return rows


def handoff_rows(part):
    """The worst length of the two targets."""
    rows = []
    excess = lambda row: row["handoff_ms"] / max(1, 0.01 * row["ttft_ms"])
    worst = max(part["within"], key=excess)
    rows.append(
        (
            "handoff after the last layer, %d tokens" % worst["tokens"],
            "at most 1 ms or 1 % of TTFT",
            "%.2f ms of %.0f ms" % (worst["handoff_ms"], worst["ttft_ms"]),
            verdict(excess(worst) <= 1),
        )
    )
    difference = lambda row: (row["client_ttft_ms"] - row["ttft_ms"]) / max(1, 0.02 * row["client_ttft_ms"])
    worst = max(part["within"], key=lambda row: abs(difference(row)))
    rows.append(
        (
            "router's TTFT against the client's, %d tokens" % worst["tokens"],
            "within 1 ms or 2 %",
            "%.2f ms of %.0f ms" % (worst["client_ttft_ms"] - worst["ttft_ms"], worst["client_ttft_ms"]),
            verdict(abs(difference(worst)) <= 1),
        )
    )
    return rows


def rows(results):
    """(what, target, measured, verdict) of every part that has run."""
    parts = results["parts"]
    found = []
    if "engine" in parts:
        found += engine_rows(parts["engine"], machine_kind(results["machine"].get("features", [])))
    for name, of_part in (("interference", interference_rows), ("router", router_rows), ("handoff", handoff_rows)):
        if name in parts:
            found += of_part(parts[name])
    return found
