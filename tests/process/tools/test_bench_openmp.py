"""loadgen/scripts/bench_openmp.py: which figures it compares, how many pairs it
takes, and what it says of them. Nothing is run.

Usage: test_bench_openmp.py
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__),
                                "../../../loadgen/scripts"))
import bench_openmp as bench  # noqa: E402

GOMP, OURS, NONE = bench.BY_GOMP, bench.BY_OURS, bench.BY_NONE


class Options:
    pairs, most_pairs = 11, 40


# The work counts where a construct should be unchanged.
assert bench.figures_of({"reference": 2, "critical": 0.5, "kernel": 9,
                         "barrier": 3, "single": -1}) == {
    "critical": 2.5, "kernel": 9, "barrier": 3, "single": 0.001}


def take(name, ours, none=lambda i: 1, seconds=1000):
    """@return the pairs of one construct that takes so much with ours and with
    nothing, by the number of the pair; a run takes 1 s."""
    order = []

    def measure(_, threads, which):
        assert threads == 4
        order.append(which)
        i = (len(order) - 1) // 3
        return {name: {GOMP: 1, OURS: ours(i), NONE: none(i)}[which]}

    found = bench.pairs_of(Options, 4, seconds, measure, lambda: len(order))
    assert order[:6] == [GOMP, OURS, NONE, NONE, OURS, GOMP], order
    return len(found), bench.verdict_of(found, name)


def noise(i):
    return 0.7 if i % 2 == 0 else 1.4


assert take("barrier", lambda i: 0.9) == (11, "faster")
assert take("barrier", lambda i: 1.01) == (11, "not faster")
assert take("critical", lambda i: 0.9) == (11, "faster")
assert take("critical", lambda i: 1.04) == (11, "unchanged")
assert take("critical", lambda i: 1.06) == (11, "slower")
# The fourth largest ratio is the end of the interval from 15 pairs on.
assert take("critical", lambda i: 1.2 if i in (1, 4, 7) else 1) == (15, "unchanged")
assert take("critical", noise) == (40, "not decided")
assert take("critical", noise, noise) == (40, "not decided like the floor")
assert take("kernel", noise, noise) == (40, "not decided like the floor")
# A pair takes 3 s: as many as have an end in time, but the least number.
assert take("critical", noise, seconds=62) == (20, "not decided")
assert take("critical", noise, seconds=1) == (11, "not decided")
