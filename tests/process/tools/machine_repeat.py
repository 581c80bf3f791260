"""Does the measurement of a machine repeat? Run it by hand or at night: it
uses the whole machine, and the result depends on other load.

Measures --times times, and compares costs between measurements on the same
levels (the probes of both directions within a factor of 1.1) that were stable.
Exit status 1 if a cost differs by more than --spread from the median of its
level.

Usage: machine_repeat.py QUOIN [--times 5] [--spread 0.1]
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

LEVEL = 1.1


def measure(quoin, path):
    begin = time.monotonic()
    done = subprocess.run([quoin, "machine", "--measure", "-o", path],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    with open(path) as f:
        return time.monotonic() - begin, json.load(f)


def near(a, b):
    return all(max(x, y) <= min(x, y) * LEVEL for x, y in zip(a, b))


def levels(seen):
    """Lists of measurements of one pair, each list on one level."""
    out = []
    for level, costs in sorted(seen, key=lambda one: one[0]):
        for group in out:
            if near(level, group[0][0]):
                group.append((level, costs))
                break
        else:
            out.append([(level, costs)])
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("quoin")
    p.add_argument("--times", type=int, default=5)
    p.add_argument("--spread", type=float, default=0.1)
    o = p.parse_args()
    seen, unstable = {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(o.times):
            took, m = measure(o.quoin, folder + "/m.json")
            n, bad = len(m["cores"]), m.get("unstable", [])
            print("measured in %.1f s, %d of %d pairs unstable" %
                  (took, len(bad), n * (n - 1) // 2))
            os = [c["core"] for c in m["cores"]]
            for u in range(n):
                for v in range(n):
                    pair = (os[u], os[v])
                    if sorted(pair) in bad:
                        unstable.add(tuple(sorted(pair)))
                    elif u != v:
                        costs = {k: m[k][u][v] for k in
                                 ("send", "receive", "round_trip")}
                        seen.setdefault(pair, []).append(
                            ((m["level"][u][v], m["level"][v][u]), costs))
    worst = {}
    for pair, all_ in seen.items():
        for group in levels(all_):
            for kind in group[0][1]:
                x = [costs[kind] for _, costs in group]
                middle = statistics.median(x)
                off = max(abs(y - middle) / middle for y in x)
                worst[kind] = max(worst.get(kind, (0,)), (off, pair, x))
    print("pairs that were unstable at least once: %d" % len(unstable))
    for kind, (off, pair, x) in worst.items():
        print("%-10s at most %4.1f %% from the median: %s -> %s: %s" %
              (kind, 100 * off, *pair, x))
    return 1 if any(w[0] > o.spread for w in worst.values()) else 0


sys.exit(main())
