#!/usr/bin/python3
"""Are programs of OpenMP faster with libquoin-gomp.so? Runs openmp_bench with
GOMP's barrier, with ours, and with a library that replaces nothing, in turn.

    bench_openmp.py [--threads 2,4,8] [--pairs 11] [--most-pairs 200] [--minutes 6]

For each number of threads the program (loadgen/openmp) runs once in each way,
the order changing with each pair. A figure of a run is the median of its
samples. `for`, `barrier` and `single` are compared by their time beside the
work that is in them, us; the others with that work, of which a critical section
would leave 20 ns, less than the work differs from run to run. A ratio is ours
over GOMP's; the median of the pairs is shown with its 95 % interval (order
statistics). GOMP waits as it does by default; --policy sets OMP_WAIT_POLICY for
all. The last column, the floor, is the ratio of the library that replaces
nothing (libm): what preloading alone and the machine change.

`for`, `barrier`, `single` and the kernel should be faster: the interval is
below 1. The others should be unchanged, which is decided when the interval lies
within 0.95 and 1.05, or faster; they are slower when it lies above 1.05. Pairs
are added until all constructs are decided, at most --most-pairs, and at most an
equal part of --minutes for each number of threads. What is undecided then says
so; "like the floor": its interval is as wide as that, so the machine does not
tell.
--check: exit status 1 unless all are faster or unchanged as they should be.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))

from tests.process.lib import script  # noqa: E402
from bench_rows import interval  # noqa: E402

BESIDE_WORK = ("for", "barrier", "single")
FASTER = (*BESIDE_WORK, "kernel")
WHOLE = ("kernel",)  # openmp_bench says it so
BY_GOMP, BY_OURS, BY_NONE = range(3)
UNCHANGED = 0.95, 1.05  # the interval lies within
BENCH = os.path.join(script.BUILD, "loadgen/openmp/openmp_bench")
OURS = os.path.join(script.BUILD, "core/barrier/gomp/libquoin-gomp.so")


def figures_of(us):
    """@return {construct: us}, of what one run of openmp_bench says."""
    work = us["reference"]
    # What is measured less than nothing is nothing.
    return {name: max(value + (0 if name in (*BESIDE_WORK, *WHOLE) else work),
                      0.001)
            for name, value in us.items() if name != "reference"}


def run(o, threads, which):
    env = dict(os.environ)
    env.pop("LD_PRELOAD", None)
    if which != BY_GOMP:
        env["LD_PRELOAD"] = o.library if which == BY_OURS else "libm.so.6"
    if o.policy:
        env["OMP_WAIT_POLICY"] = o.policy
    done = subprocess.run(
        [o.bench, str(threads), str(o.samples), str(o.us)], env=env,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{o.bench}: exit status {done.returncode} {done.stderr}")
    return figures_of(json.loads(done.stdout)["us"])


def ratio(pairs, name, which=BY_OURS):
    """Over GOMP's: the median of the pairs, and the ends of its interval."""
    return interval([p[which][name] / p[BY_GOMP][name] for p in pairs])


def is_within(low, high):
    return UNCHANGED[0] <= low and high <= UNCHANGED[1]


def judge(name, low, high):
    """@return None: more pairs would tell."""
    if high < 1:
        return "faster"
    if name in FASTER:
        return "not faster" if low > 1 else None
    if is_within(low, high):
        return "unchanged"
    return "slower" if low > UNCHANGED[1] else None


def verdict_of(pairs, name):
    _, low, high = ratio(pairs, name)
    _, floor_low, floor_high = ratio(pairs, name, BY_NONE)
    undecided = ("not decided" if is_within(floor_low, floor_high)
                 else "not decided like the floor")
    return judge(name, low, high) or undecided


def pairs_of(o, threads, seconds, measure=run, clock=time.monotonic):
    """@return [{way: {construct: us}}]; there are least pairs, and more until
    all constructs are decided, or there is no time for one more."""
    found, began = [], clock()
    while len(found) < o.pairs or (
            len(found) < o.most_pairs and
            (clock() - began) * (len(found) + 1) / len(found) <= seconds and
            any(judge(name, *ratio(found, name)[1:]) is None
                for name in found[0][BY_GOMP])):
        order = range(3)[::1 if len(found) % 2 == 0 else -1]
        found.append({which: measure(o, threads, which) for which in order})
    return found


def show(threads, pairs):
    """@return whether all is as it should be."""
    met = True
    for name in pairs[0][BY_GOMP]:
        verdict = verdict_of(pairs, name)
        met = met and verdict in ("faster", "unchanged")
        print("| %d | %s | %.2f | %.2f | %.2f (%.2f to %.2f) | %d | %s | "
              "%.2f (%.2f to %.2f) |" % (
                  threads, name,
                  *(statistics.median(p[which][name] for p in pairs)
                    for which in (BY_GOMP, BY_OURS)),
                  *ratio(pairs, name), len(pairs), verdict,
                  *ratio(pairs, name, BY_NONE)), flush=True)
    return met


def numbers(text):
    found = text.split(",")
    if not all(n.isdecimal() and 1 <= int(n) <= 64 for n in found):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no list of numbers from 1 to 64, as 2,4 is")
    return [int(n) for n in found]


def parse():
    p = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", default="2,4,8", type=numbers)
    p.add_argument("--pairs", type=int, default=11, help="at least (%(default)s)")
    p.add_argument("--most-pairs", type=int, default=200,
                   help="of a number of threads (%(default)s)")
    p.add_argument("--minutes", type=float, default=6,
                   help="of all, if --pairs take no longer (%(default)s)")
    p.add_argument("--samples", type=int, default=10, help="of a run")
    p.add_argument("--us", type=float, default=2000, help="of a sample")
    p.add_argument("--policy", choices=("active", "passive"))
    p.add_argument("--bench", default=BENCH, help="openmp_bench")
    p.add_argument("--library", default=OURS, help="libquoin-gomp.so")
    p.add_argument("--json", metavar="FILE", help="all pairs")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a figure is not as it should be")
    o = p.parse_args()
    for path in (o.bench, o.library):
        if not os.path.exists(path):
            p.error(f"{path} is not there; build openmp_bench and quoin-gomp")
    if o.pairs < 1:
        p.error("--pairs must be more than 0")
    return o


def main():
    o = parse()
    every, met, end = {}, True, time.monotonic() + 60 * o.minutes
    print("| threads | construct | us, GOMP | us, quoin | ratio | pairs | | "
          "floor |\n|---|---|---|---|---|---|---|---|")
    for i, threads in enumerate(o.threads):
        seconds = (end - time.monotonic()) / (len(o.threads) - i)
        every[threads] = pairs_of(o, threads, seconds)
        met = show(threads, every[threads]) and met
    if o.json:
        with open(o.json, "w", encoding="utf-8") as to:
            json.dump(every, to, indent=1)
    return 1 if o.check and not met else 0


if __name__ == "__main__":
    sys.exit(main())
