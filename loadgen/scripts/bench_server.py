#!/usr/bin/python3
"""quoind compared with Debian's redis-server, on this machine, at the same
time.

Both servers are started on free ports and loaded with the same keys. Then
`quoin load` measures them in turn: one pair is quoind, redis; the next pair
redis, quoind; and so on. A figure is the median over the pairs, a ratio is the
median of the pairs' ratios (quoind / redis), so that a drift of the machine
counts for both. The server that is not measured is idle, and its idle CPU use
is measured first.

The last table compares quoind with itself: the SET rate at the ports of two
replicas while the third runs and while it is stopped, in turn.

A full run takes about 25 minutes; `--sizes 64ki --only SET` takes one.

All started programs are ended, also on Ctrl-C.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from bench_processes import (REPLICAS, cpu_seconds, memory_bytes, quoind,
                             redis)
from bench_rows import (FIGURES, Row, STOPS_NAME, TROUBLE, all_rows, is_met,
                        missed, parse_sizes, print_facts, print_header, print_row, print_stops,
                        stop_ratios)


QUICK_BYTES = 32 << 20  # of a row's values, with --quick


class Stopped:
    """A block during which one replica is stopped."""

    def __init__(self, server, replica):
        self.pid = server.replica_pid(replica)

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)

    def __exit__(self, *exc):
        os.kill(self.pid, signal.SIGCONT)


class Bench:
    def __init__(self, options):
        self.options = options
        self.servers = [quoind(options.quoind), redis()]
        self.real = options.quoind != "redis"
        self.facts = []  # (what, quoind, redis, target, met)
        self.stops = None

    def say(self, text):
        print(text, file=sys.stderr, flush=True)

    def load(self, server, row, *args):
        """One run of `quoin load`; @return its summary."""
        to = [server.port]
        if row.stopped and server is self.servers[0]:
            to = [server.port + 1 + i for i in range(REPLICAS - 1)]
        command = [self.options.quoin, "load", "--json", "--keys",
                   str(row.keys), "--key-size", "8", "--value-size",
                   str(row.value_size), "--threads",
                   str(self.options.threads), "--cpu-tree",
                   str(server.process.pid)]
        for port in to:
            command += ["--to", f"127.0.0.1:{port}"]
        done = subprocess.run(command + list(args), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        lines = done.stdout.splitlines()
        if done.returncode != 0:
            self.say(f"{server.name}, {row.name}: {done.stderr.strip()}")
        if not lines:
            return None
        got = json.loads(lines[-1])
        if any(got[name] for name in TROUBLE):
            self.say(f"{server.name}, {row.name}: {got['errors']} errors "
                     f"({got['first_error']}), {got['unanswered']} unanswered, "
                     f"{got['misses']} misses, {got['wrong']} wrong")
        return got

    def preload(self, row):
        for side, server in enumerate(self.servers):
            server.ask("FLUSHALL", timeout=60)
            done = self.load(server, row, "--preload", "--requests", "1",
                             "--mix", "ping", "--warmup", "0")
            row.failed[side] += done is None

    def measure(self, row, server, seconds=None):
        length = ["--seconds", str(seconds or self.options.seconds),
                  "--warmup", "0.3"]
        if row.counted():
            length = ["--requests", str(row.counted()), "--warmup", "0"]
        if self.options.quick:
            requests = max(QUICK_BYTES // row.value_size, 2)
            length = ["--requests", str(min(requests, 500)), "--warmup", "0"]
        got = self.load(server, row, "--mix", row.mix, "--pipeline",
                        str(row.pipeline), "--connections",
                        str(row.connections), *length)
        if got is None:
            sys.exit(f"{server.name}, {row.name}: quoin load did not run")
        return got

    def installed(self):
        """Snapshots that quoind's replicas have installed in this incarnation:
        INFO's `snapshotsN`, or, for a server without that, the events still in
        its flight recorders."""
        if not self.real:
            return 0
        server = self.servers[0]
        info = server.info()
        for _ in range(50):  # a replica that is busy for 100 ms is left out
            if "snapshots0" not in info or all(
                    f"snapshots{i}" in info for i in range(REPLICAS)):
                break
            info = server.info()
        if "snapshots0" in info:
            return sum(int(re.search(r"joined=(\d+)", info[f"snapshots{i}"])[1])
                       for i in range(REPLICAS))
        to = [x for i in range(REPLICAS)
              for x in ("--to", f"127.0.0.1:{server.port + 1 + i}")]
        done = subprocess.run([self.options.quoin, "events", "--json", *to],
                              stdout=subprocess.PIPE, text=True)
        events = map(json.loads, done.stdout.splitlines())
        return len({(e["replica"], e["incarnation"], e["index"]) for e in events
                    if e["event"] == "installed"})

    def run_row(self, row):
        before = self.installed()
        for pair in range(self.options.pairs):
            sides = [(row.a, self.servers[0]), (row.b, self.servers[1])]
            for runs, server in sides if pair % 2 == 0 else sides[::-1]:
                if row.stopped and server is self.servers[0]:
                    with Stopped(server, REPLICAS - 1):
                        runs.append(self.measure(row, server))
                    server.catch_up(REPLICAS - 1)
                else:
                    runs.append(self.measure(row, server))
                row.weigh(self.servers.index(server), server.weigh())
        row.snapshots = max(self.installed() - before, 0)
        print_row(row)

    def run_stops(self):
        """The SET rate of two replicas in turn: while the third runs, is
        stopped, runs, and so on."""
        row = Row(STOPS_NAME, "set", 16, stopped=True)
        if self.options.quick:
            row.keys = 1000
        server = self.servers[0]
        self.preload(row)
        third = REPLICAS - 1
        running = [self.measure(row, server)]
        stopped, catching_up = [], []
        for _ in range(self.options.stops):
            with Stopped(server, third):
                stopped.append(
                    self.measure(row, server, self.options.stop_seconds))
            catching_up.append(server.catch_up(third))
            running.append(self.measure(row, server))
        self.stops = {"row": row.name, "running": running, "stopped": stopped,
                      "catch_up_s": catching_up}
        print_stops(self.stops, self.options)

    def start(self):
        """Starts each server a few times, and measures it idle."""
        times = [[], []]
        for _ in range(self.options.pairs):
            for side, server in enumerate(self.servers):
                server.stop()
                times[side].append(server.start() * 1000)
        medians = [statistics.median(t) for t in times]
        self.facts.append(("start to first PONG, ms", *medians, "<= 100",
                           medians[0] <= 100))
        self.facts.append(("the slowest of these", max(times[0]),
                           max(times[1]), "", True))
        time.sleep(min(1, self.options.seconds))  # work left from the start
        idle = []
        pids = [server.pids() for server in self.servers]
        before = [cpu_seconds(p) for p in pids]
        seconds = 0.1 if self.options.quick else 5
        time.sleep(seconds)
        for p, b in zip(pids, before):
            idle.append(100 * (cpu_seconds(p) - b) / seconds)
        self.facts.append(("idle, % of a core", *idle, "< 1", idle[0] < 1))

    def weigh(self, row, before):
        now = [memory_bytes(s.pids()) for s in self.servers]
        self.facts.append((f"memory with {row.keys} keys, MiB",
                           *(n / (1 << 20) for n in now), "", True))
        self.facts.append(("bytes per key, all processes",
                           *((n - b) / row.keys for n, b in zip(now, before)),
                           "", True))

    def run(self):
        rows = self.rows()
        self.start()
        data = None
        if rows:
            print_header()
        for row in rows:
            if row.data() != data:
                before = [memory_bytes(s.pids()) for s in self.servers]
                self.preload(row)
                if data is None:
                    self.weigh(row, before)
                data = row.data()
            self.run_row(row)
        if self.with_stops():
            self.run_stops()
        return rows

    def with_stops(self):
        only = self.options.only
        sizes = self.options.sizes
        return (self.real and self.options.stops > 0 and
                (not sizes or 16 in sizes) and
                (not only or re.search(only, STOPS_NAME) is not None))

    def rows(self):
        rows = [r for r in all_rows() if self.real or not r.stopped]
        if self.options.quick:
            for row in rows:
                row.keys = min(row.keys, 1000)
        if self.options.only:
            rows = [r for r in rows if re.search(self.options.only, r.name)]
        if self.options.sizes:
            rows = [r for r in rows if r.value_size in self.options.sizes]
        if not rows and not self.with_stops():
            sys.exit("no row is left by --only and --sizes; --list shows all")
        # Values of one size together: a preload each. Stopping comes last.
        return sorted(rows, key=lambda r: (r.stopped, r.value_size))

    def stop(self):
        for server in self.servers:
            server.stop()


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    return {
        "cpu": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "load": os.getloadavg()[0],
        "redis": output_of("redis-server", "--version"),
        "commit": output_of("git", "-C", os.path.dirname(__file__) or ".",
                            "describe", "--always", "--dirty"),
    }


def output_of(*command):
    try:
        return subprocess.run(command, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL,
                              text=True).stdout.strip()
    except OSError:
        return ""


def write_json(path, about, options, bench, rows):
    with open(path, "w") as f:
        json.dump({
            "machine": about,
            "options": vars(options),
            "stops": bench.stops and dict(
                bench.stops, ratios=stop_ratios(bench.stops)),
            "facts": [dict(zip(("what", "quoind", "redis", "target", "met"), x))
                      for x in bench.facts],
            "rows": [{
                "name": row.name, "quoind": row.a, "redis": row.b,
                "errors": row.errors(), "snapshots": row.snapshots,
                "memory": row.weights,
                "ratios": {f: statistics.median(row.ratios(f))
                           for f in FIGURES},
                "targets": [{"figure": f, "relation": rel, "ratio": bound,
                             "met": is_met(row, f, rel, bound)}
                            for f, rel, bound in row.targets],
            } for row in rows],
        }, f, indent=1)


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quoind", default="build/release/kvs/quoind",
                        help="the program, or 'redis' to compare redis with "
                        "itself (%(default)s)")
    parser.add_argument("--quoin", default="build/release/loadgen/quoin")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1,
                        help="per run (%(default)s)")
    parser.add_argument("--stops", type=int, default=20,
                        help="of one replica, to compare quoind with itself; "
                        "0 for none (%(default)s)")
    parser.add_argument("--stop-seconds", type=float, default=5,
                        help="each (%(default)s)")
    parser.add_argument("--threads", type=int, default=1,
                        help="of the load generator (%(default)s)")
    parser.add_argument("--only", metavar="REGEX", help="rows by name")
    parser.add_argument("--sizes", metavar="LIST",
                        help="rows by the size of their values: 16,1ki,64ki,"
                        "16mi (all)")
    parser.add_argument("--json", metavar="FILE", help="write all runs there")
    parser.add_argument("--quick", action="store_true",
                        help="500 requests per row on 1000 keys, fewer "
                        "large ones: only checks that it works")
    parser.add_argument("--check", action="store_true",
                        help="exit status 1 if a target is missed")
    parser.add_argument("--list", action="store_true", help="names of the rows")
    options = parser.parse_args()
    if options.pairs < 1 or options.seconds <= 0:
        parser.error("--pairs and --seconds must be more than 0")
    try:
        options.sizes = options.sizes and parse_sizes(options.sizes)
    except ValueError as e:
        parser.error(f"--sizes: {e}")
    if options.stops < 0 or options.stop_seconds <= 0:
        parser.error("--stops must not be negative, --stop-seconds more than "
                     "0")
    if options.quick:
        options.pairs = 1
        options.seconds = 0.1
        options.stops = min(options.stops, 2)
    for path in options.quoin, options.quoind:
        if path != "redis" and not os.access(path, os.X_OK):
            parser.error(f"{path} is not a program; build it, or name another")
    if shutil.which("redis-server") is None:
        parser.error("redis-server is missing; apt-get install redis-server")
    options.quoin = os.path.abspath(options.quoin)
    return options


def main():
    options = parse_options()
    if options.list:
        print("\n".join(row.name for row in all_rows()))
        print(STOPS_NAME)
        return 0
    about = machine()
    print(", ".join(f"{k} {v}" for k, v in about.items()))
    print(f"{options.pairs} pairs of {options.seconds:g} s, load generator "
          f"with {options.threads} thread(s), {REPLICAS} replicas", flush=True)
    bench = Bench(options)
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, signal.default_int_handler)
    try:
        rows = bench.run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    finally:
        bench.stop()
    print_facts(bench.facts)
    if options.json:
        write_json(options.json, about, options, bench, rows)
    short = missed(rows, bench.facts, bench.stops)
    if short:
        print("\nshort of the target: " + "; ".join(short))
    return 1 if short and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
