"""The arithmetic of the bench: percentiles, goodput, arrival times, lengths. Pure functions."""

import math
import statistics

# Quantiles of the mixed load: (share of the requests, tokens at most).
PROMPT_QUANTILES = ((0.50, 255), (0.90, 684), (0.99, 1035))
OUTPUT_QUANTILES = ((0.50, 32), (0.90, 106), (0.99, 150))

# What a request must keep to be good: name, TTFT and TPOT in ms.
OBJECTIVES = (("tight", 500, 30), ("medium", 1000, 60), ("loose", 2000, 100))


def percentile(values, percent):
    """The smallest value that at least `percent` of all do not exceed, as client/percentiles.h has it; None of nothing."""
    if not values:
        return None
    rank = math.ceil(percent * len(values) / 100)
    return sorted(values)[max(rank, 1) - 1]


def summary(values):
    """None of nothing."""
    if not values:
        return None
    points = {"p%d" % percent: percentile(values, percent) for percent in (50, 90, 99)}
    return {"count": len(values), "mean": statistics.fmean(values), **points, "max": max(values)}


def median_ratio(rounds, numerator, denominator):
    """The median of the ratios of each round, which are (name -> value); rounds that lack one of the two do not count."""
    ratios = [
        values[numerator] / values[denominator]
        for values in rounds
        if values.get(numerator) and values.get(denominator)
    ]
    return statistics.median(ratios) if ratios else None


def median_of(rounds, name):
    values = [values[name] for values in rounds if values.get(name) is not None]
    return statistics.median(values) if values else None


def is_good(request, ttft_ms, tpot_ms):
    """`request` has ok, ttft_ms and tpot_ms; an answer of one token has no TPOT and keeps any."""
    if not request["ok"] or request["ttft_ms"] is None or request["ttft_ms"] > ttft_ms:
        return False
    return request["tpot_ms"] is None or request["tpot_ms"] <= tpot_ms


def goodput(requests, offered_seconds):
    """Requests per second that kept each objective, by its name. 0 where none did; over the time in which the requests
    were sent, so that a slow end does not lower it."""
    return {
        name: sum(is_good(request, ttft_ms, tpot_ms) for request in requests) / offered_seconds
        for name, ttft_ms, tpot_ms in OBJECTIVES
    }


class SplitMix:
    """SplitMix64, as client/split_mix.h."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = seed & self.MASK

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & self.MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & self.MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & self.MASK
        return mixed ^ (mixed >> 31)

    def uniform(self):
        """In (0, 1)."""
        return ((self.next() >> 11) + 0.5) * 2.0**-53


def arrivals(rate, seed, count):
    """Seconds at which the requests of a Poisson process are sent: those of `baton bench --rate --load-seed`."""
    random, elapsed, times = SplitMix(seed), 0.0, []
    for _ in range(count):
        elapsed += -math.log(random.uniform()) / rate
        times.append(elapsed)
    return times


def length_at(share, quantiles, least):
    """The length that `share` of the requests do not exceed: lognormal between the quantiles given, and beyond them with
    the deviation of the nearest pair; no longer than half as much again as the last."""
    normal = statistics.NormalDist()
    points = [(normal.inv_cdf(at), math.log(tokens)) for at, tokens in quantiles]
    z = normal.inv_cdf(share)
    left, right = points[0], points[1]
    for pair in zip(points, points[1:]):
        if z >= pair[0][0]:
            left, right = pair
    slope = (right[1] - left[1]) / (right[0] - left[0])
    length = round(math.exp(left[1] + slope * (z - left[0])))
    return min(max(length, least), quantiles[-1][1] * 3 // 2)


def mixed_lengths(seed, count):
    """(prompt tokens, output tokens) of each request."""
    random = SplitMix(seed)
    return [
        (length_at(random.uniform(), PROMPT_QUANTILES, 4), length_at(random.uniform(), OUTPUT_QUANTILES, 2))
        for _ in range(count)
    ]


def prompt_ids(seed, count, vocab_size):
    random = SplitMix(seed)
    return [random.next() % vocab_size for _ in range(count)]
