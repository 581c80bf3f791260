#!/usr/bin/python3
"""Is this quoind as fast as another one? Runs two programs in turn, in one
run.

    bench_commits.py --before ../before/build/release/kvs/quoind
    bench_commits.py --before ../before/build/release/kvs/quoind --channel

Both run at the same time, with three replicas and a million keys of 8 and 16
bytes, and are restarted after each 2 pairs, the other one first: the placement
of its memory affects the speed of a server by a few per cent as long as it
lives; `quoin load` measures one, then the other, GET and SET, without and with
a pipeline of 16. The order changes with each pair. A ratio is this one's rate
over the other's; the median of the pairs is shown with its 95 % interval
(order statistics). The lower end must be at least 0.93: 5 %, and 2 % for the
noise of the machine, which a run with the same program for `--quoind` and
`--before` shows.

With --channel, `quoin bench channel` of both builds is measured instead. Its raw
forms use nothing of ours: their ratios tell what the placement of code and memory
does.

All started programs are ended, also on Ctrl-C.
"""
import json
import os
import re
import statistics
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))

from tests.process.lib import script  # noqa: E402
from bench_processes import quoind  # noqa: E402
from bench_rows import interval  # noqa: E402

ROWS = [("GET P=1", "get", 1), ("SET P=1", "set", 1),
        ("GET P=16", "get", 16), ("SET P=16", "set", 16)]
LEAST = 0.93
SAME = 2  # pairs with the same two servers


def load(o, server, *args):
    done = subprocess.run(
        [o.quoin, "load", "--json", "--threads", "1", "--keys", str(o.keys),
         "--key-size", "8", "--value-size", "16", "--to",
         f"127.0.0.1:{server.port}", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{server.name}: quoin load: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(o, server, mix, pipeline):
    got = load(o, server, "--mix", mix, "--pipeline", str(pipeline),
               "--connections", "50", "--warmup", "0.2", "--seconds",
               str(o.seconds), "--cpu-tree", str(server.process.pid))
    return {"ops": got["ops_per_s"], "cpu": got["cpu_us_per_op"],
            "p99": got["latency_us"]["p99"]}


def known(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, TypeError):
        return {name: [] for name, _, _ in ROWS}


def show(name, pairs):
    ratios = [a["ops"] / b["ops"] for a, b in pairs]
    middle, low, high = interval(ratios)
    met = low >= LEAST
    print("| %s | %d | %.1f / %.1f | %.3f (%.3f to %.3f) | %.2f / %.2f | %s |" % (
        name, len(pairs),
        *(statistics.median(p[i]["ops"] for p in pairs) / 1000
          for i in (0, 1)), middle, low, high,
        *(statistics.median(p[i]["cpu"] for p in pairs) for i in (0, 1)),
        "met" if met else "SHORT"), flush=True)
    return met


def channel(o, quoin):
    """The median of each form of `quoin bench channel`, ns."""
    done = subprocess.run([quoin, "bench", "channel", "--endpoints", "0",
                           "--seconds", str(o.seconds / 10)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{quoin}: {done.stderr}")
    return {f"{form['form']}, {form['kind']}": form["ns"]["median"]
            for form in json.loads(done.stdout)["two_nodes"]}


def channels(o):
    """Pairs of both builds, the other one first in every second."""
    before = os.path.join(os.path.dirname(o.before), "../loadgen/quoin")
    found = {}
    for pair in range(o.pairs):
        got = {}
        for quoin in (o.quoin, before) if pair % 2 == 0 else (before, o.quoin):
            got[quoin] = channel(o, quoin)
        for name, ns in got[o.quoin].items():
            found.setdefault(name, []).append((ns, got[before][name]))
    return found


def show_channels(found):
    print("| form | pairs | ns, this / before | ratio of rates | |\n"
          "|---|---|---|---|---|")
    met = []
    for name, pairs in found.items():
        middle, low, high = interval([b / a for a, b in pairs])
        met.append(low >= LEAST)
        print("| %s | %d | %.1f / %.1f | %.3f (%.3f to %.3f) | %s |" % (
            name, len(pairs), *(statistics.median(p[i] for p in pairs)
                                for i in (0, 1)), middle, low, high,
            "met" if met[-1] else "SHORT"))
    return met


def rows(o):
    return [row for row in ROWS if re.search(o.only, row[0])]


def run(o):
    found = known(o.json)
    for first in range(0, o.pairs, SAME):
        pairs(o, range(first, min(first + SAME, o.pairs)), found)
    return found


def pairs(o, numbers, found):
    """Runs this many pairs with the same two servers."""
    servers = [quoind(o.quoind), quoind(o.before)]
    try:
        for server in servers if numbers[0] // SAME % 2 == 0 else servers[::-1]:
            server.start()
            load(o, server, "--preload", "--requests", "1", "--mix", "ping",
                 "--warmup", "0", "--connections", "32", "--pipeline", "64")
        for pair in numbers:
            for name, mix, pipeline in rows(o):
                got = [None, None]
                for i in (0, 1) if pair % 2 == 0 else (1, 0):
                    got[i] = measure(o, servers[i], mix, pipeline)
                found[name].append(got)
    finally:
        for server in servers:
            server.stop()


def parse():
    p = script.parser(__doc__)
    p.add_argument("--before", required=True, help="the other program")
    p.add_argument("--pairs", type=int, default=20)
    p.add_argument("--seconds", type=float, default=1,
                   help="per run (%(default)s)")
    p.add_argument("--keys", type=int, default=10 ** 6)
    p.add_argument("--channel", action="store_true",
                   help="`quoin bench channel` instead of servers")
    p.add_argument("--only", default="", metavar="REGEX", help="loads")
    p.add_argument("--json", metavar="FILE",
                   help="all pairs, including those in the file")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a ratio is too low")
    o = script.options(p, "before")
    if o.pairs < 1 or o.seconds <= 0:
        p.error("--pairs and --seconds must be more than 0")
    return o


def main():
    o = parse()
    if o.channel:
        return 1 if not all(show_channels(channels(o))) and o.check else 0
    found = script.end(lambda: run(o), o)
    print("| load | pairs | kop/s, this / before | ratio | CPU us/op | |\n"
          "|---|---|---|---|---|---|")
    met = [show(name, found[name]) for name, _, _ in rows(o)]
    return 1 if o.check and not all(met) else 0


if __name__ == "__main__":
    sys.exit(main())
