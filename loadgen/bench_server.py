#!/usr/bin/python3
"""quoind beside Debian's redis-server, on this machine, in this hour.

Both servers are started on free ports and loaded with the same keys. Then
`quoin load` measures them in turn: one pair is quoind, redis; the next pair
redis, quoind; and so on. A figure is the median over the pairs, a ratio is the
median of the pairs' ratios (quoind / redis), so that a drift of the machine
counts for both. The server that is not measured idles, and what it uses while
it idles is measured first.

The last table compares quoind with itself: the SET rate at the ports of two
replicas while the third runs and while it is stopped, in turn.

CPU is that of all processes of a server. Memory is their proportional share
(Pss): what several processes map counts once.

Whatever was started is ended, also on Ctrl-C.
"""

import argparse
import ctypes
import json
import math
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

REPLICAS = 3


# ---- processes ----

def process_tree(root):
    """The process `root` and its descendants."""
    parent_of = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    after_name = f.read().rpartition(")")[2].split()
                parent_of[int(name)] = int(after_name[1])
            except OSError:
                pass  # it has ended meanwhile
    tree = [root]
    for pid in tree:  # grows while it is walked
        tree += [p for p, parent in parent_of.items() if parent == pid]
    return tree


def cpu_seconds(pids):
    return sum(time.clock_gettime(process_clock(pid)) for pid in pids)


def process_clock(pid):
    """The clock id of a process's CPU time (see clock_getcpuclockid)."""
    return (~pid << 3) | 2


def memory_bytes(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += int(re.search(r"^Pss:\s+(\d+) kB", f.read(), re.M)[1])
    return total * 1024


def end_with_parent():
    """In the child: SIGTERM if this script is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


# ---- servers ----

def free_ports(count):
    """The first of `count` free ports in a row."""
    while True:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            first = s.getsockname()[1]
        if first + count > 65535:
            continue
        held = []
        try:
            for port in range(first, first + count):
                held.append(socket.socket())
                held[-1].bind(("127.0.0.1", port))
            return first
        except OSError:
            pass
        finally:
            for s in held:
                s.close()


class Server:
    """A server process and its children; `command` gets a free port."""

    def __init__(self, name, command):
        self.name = name
        self.command = command
        self.process = None

    def start(self):
        """@return seconds until the first PONG."""
        self.dir = tempfile.mkdtemp(prefix="qn-bench-")
        self.port = free_ports(1 + REPLICAS)
        self.log = open(os.path.join(self.dir, "log"), "w+")
        began = time.monotonic()
        self.process = subprocess.Popen(
            self.command(self.port), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, cwd=self.dir, start_new_session=True,
            preexec_fn=end_with_parent)
        while not self.answers():
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{self.name} ended at once:\n{self.log.read()}")
            if time.monotonic() - began > 20:
                sys.exit(f"{self.name} does not answer")
            time.sleep(0.001)
        return time.monotonic() - began

    def answers(self):
        try:
            return self.ask("PING").startswith("+PONG")
        except OSError:
            return False

    def ask(self, line, port=None, timeout=5):
        with socket.create_connection(("127.0.0.1", port or self.port),
                                      timeout=timeout) as s:
            s.sendall(line.encode() + b"\r\n")
            return s.recv(65536).decode()

    def pids(self):
        return process_tree(self.process.pid)

    def catch_up(self, i):
        """@return seconds until replica i answers a linearizable read: then it
        has applied what was decided when it was asked."""
        began = time.monotonic()
        self.ask("GET nobody", self.port + 1 + i, timeout=60)
        return time.monotonic() - began

    def replica_pid(self, i):
        """Process of replica i: its own port is port + 1 + i."""
        info = self.ask("INFO server", self.port + 1 + i)
        return int(re.search(r"process_id:(\d+)", info)[1])

    def stop(self):
        if self.process is None:
            return
        pids = self.pids()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            for pid in pids:  # children first would be started again
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()
        self.process = None
        self.log.close()
        shutil.rmtree(self.dir)


def redis(name="redis"):
    return Server(name, lambda port: [
        "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save",
        "", "--appendonly", "no"])


def quoind(path):
    if path == "redis":
        return redis("redis too")
    path = os.path.abspath(path)
    return Server("quoind", lambda port: [
        path, "--port", str(port), "--replicas", str(REPLICAS)])


# ---- what is measured ----

class Row:
    def __init__(self, name, mix, pipeline, connections=50, value_size=16,
                 keys=1000000, stopped=False, targets=()):
        self.name = name
        self.mix = mix
        self.pipeline = pipeline
        self.connections = connections
        self.value_size = value_size
        self.keys = keys
        self.stopped = stopped  # one replica is
        self.targets = targets  # (figure, ">=" or "<=", ratio)
        self.a = []             # quoind's runs, `quoin load`'s JSON
        self.b = []             # redis'

    def data(self):
        """Rows with the same data share a preload."""
        return self.value_size, self.keys

    def ratios(self, figure):
        return [a / b if b else float("nan")
                for a, b in zip(series(self.a, figure),
                                series(self.b, figure))]


def series(runs, figure):
    return [FIGURES[figure](run) for run in runs]


def interval(values):
    """The median and, around it, what holds it with 95 % certainty whatever
    the distribution: order statistics of the binomial. Least and most of few
    values."""
    values = sorted(values)
    n = len(values)
    tail, k = 0.5 ** n, 0  # P(fewer than k + 1 of n lie below the median)
    while tail <= 0.025:
        k += 1
        tail += math.comb(n, k) * 0.5 ** n
    k = max(k - 1, 0)
    return statistics.median(values), values[k], values[n - 1 - k]


FIGURES = {
    "ops": lambda run: run["ops_per_s"],
    "p50": lambda run: run["latency_us"]["p50"],
    "p99": lambda run: run["latency_us"]["p99"],
    "cpu": lambda run: run["cpu_us_per_op"],
}

MIXES = (("GET", "get"), ("SET", "set"), ("80/20", "get:80,set:20"))


def all_rows():
    least = {"GET": 1.0, "SET": 0.7, "80/20": 0.9}
    most_cpu = {("GET", 16): 1.0, ("SET", 16): 2.2,
                ("GET", 1): 1.2, ("SET", 1): 4}
    rows = []
    for pipeline in 1, 16, 64:
        for name, mix in MIXES:
            targets = []
            if pipeline > 1:
                targets.append(("ops", ">=", least[name]))
            if (name, pipeline) in most_cpu:
                targets.append(("cpu", "<=", most_cpu[name, pipeline]))
            rows.append(Row(f"{name} P={pipeline}", mix, pipeline,
                            targets=targets))
    rows.append(Row("GET P=1, 1 connection", "get", 1, connections=1))
    rows.append(Row("SET P=1, 1 connection", "set", 1, connections=1,
                    targets=[("p50", "<=", 3)]))
    for name, mix in MIXES:
        rows.append(Row(f"{name} P=1, 1000 connections", mix, 1,
                        connections=1000))
    for text, size, keys in (("1 KiB", 1024, 100000), ("64 KiB", 65536, 1000)):
        for pipeline in 1, 16:
            for name, mix in MIXES:
                rows.append(Row(f"{name} P={pipeline}, {text}", mix, pipeline,
                                value_size=size, keys=keys))
    for name, mix in MIXES:
        rows.append(Row(f"{name} P=16, one replica stopped", mix, 16,
                        stopped=True))
    return rows


# The row within quoind: its SET rate while one replica is stopped.
STOPS_NAME = "SET P=16 at replicas 0 and 1, within quoind"
STOPPED_LEAST = 0.9


class Stopped:
    """A block during which one replica stands still."""

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
        if done.returncode != 0:
            sys.exit(f"{server.name}, {row.name}: {done.stderr}{done.stdout}")
        got = json.loads(done.stdout.splitlines()[-1])
        if got["errors"] or got["unanswered"] or got["misses"]:
            self.say(f"{server.name}, {row.name}: {got['errors']} errors "
                     f"({got['first_error']}), {got['unanswered']} unanswered, "
                     f"{got['misses']} misses")
        return got

    def preload(self, row):
        for server in self.servers:
            server.ask("FLUSHALL")
            self.load(server, row, "--preload", "--requests", "1", "--mix",
                      "ping", "--warmup", "0")

    def measure(self, row, server, seconds=None):
        length = ["--seconds", str(seconds or self.options.seconds),
                  "--warmup", "0.3"]
        if self.options.quick:
            length = ["--requests", "500", "--warmup", "0"]
        return self.load(server, row, "--mix", row.mix, "--pipeline",
                         str(row.pipeline), "--connections",
                         str(row.connections), *length)

    def run_row(self, row):
        for pair in range(self.options.pairs):
            sides = [(row.a, self.servers[0]), (row.b, self.servers[1])]
            for runs, server in sides if pair % 2 == 0 else sides[::-1]:
                if row.stopped and server is self.servers[0]:
                    with Stopped(server, REPLICAS - 1):
                        runs.append(self.measure(row, server))
                    server.catch_up(REPLICAS - 1)
                else:
                    runs.append(self.measure(row, server))
        print_row(row)

    def run_stops(self):
        """The SET rate of two replicas, beside itself: while the third runs,
        is stopped, runs, and so on."""
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
        """Start each server a few times, and see it idle."""
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
        time.sleep(min(1, self.options.seconds))  # what start leaves to do
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
        return (self.real and self.options.stops > 0 and
                (not only or re.search(only, STOPS_NAME) is not None))

    def rows(self):
        rows = [r for r in all_rows() if self.real or not r.stopped]
        if self.options.quick:
            for row in rows:
                row.keys = min(row.keys, 1000)
        if self.options.only:
            rows = [r for r in rows if re.search(self.options.only, r.name)]
        if not rows and not self.with_stops():
            sys.exit(f"no row matches '{self.options.only}'; --list shows all")
        # Values of one size together: a preload each. Stopping comes last.
        return sorted(rows, key=lambda r: (r.stopped, r.value_size))

    def stop(self):
        for server in self.servers:
            server.stop()


# ---- output ----

def targets_text(row):
    texts = []
    for figure, relation, bound in row.targets:
        met = is_met(row, figure, relation, bound)
        texts.append(f"{figure} {relation} {bound:g}"
                     f"{'' if met else ' SHORT'}")
    return ", ".join(texts)


def is_met(row, figure, relation, bound):
    ratio = statistics.median(row.ratios(figure))
    return ratio >= bound if relation == ">=" else ratio <= bound


def print_header():
    print("\nquoind / redis; kop/s, us; CPU in us per request, all processes; "
          "ratios with their least and most\n")
    print("| load | kop/s | ratio | p50 | p99 | p50 ratio | CPU | CPU ratio "
          "| target |\n|---|---|---|---|---|---|---|---|---|")


def both(row, figure, form, scale=1):
    a = statistics.median(series(row.a, figure)) / scale
    b = statistics.median(series(row.b, figure)) / scale
    return f"{a:{form}} / {b:{form}}"


def ratio_text(ratios):
    return (f"{statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f})")


def print_row(row):
    print(f"| {row.name} | {both(row, 'ops', '.1f', 1000)} "
          f"| {ratio_text(row.ratios('ops'))} "
          f"| {both(row, 'p50', '.0f')} | {both(row, 'p99', '.0f')} "
          f"| {ratio_text(row.ratios('p50'))} "
          f"| {both(row, 'cpu', '.2f')} "
          f"| {ratio_text(row.ratios('cpu'))} "
          f"| {targets_text(row)} |", flush=True)


def stop_ratios(stops):
    """Each stopped interval beside the mean of the running ones around it."""
    running = [run["ops_per_s"] for run in stops["running"]]
    return [2 * run["ops_per_s"] / (before + after) for run, before, after
            in zip(stops["stopped"], running, running[1:])]


def stops_met(stops):
    return statistics.median(stop_ratios(stops)) >= STOPPED_LEAST


def print_stops(stops, options):
    ratio, low, high = interval(stop_ratios(stops))
    rates = [statistics.median(run["ops_per_s"] / 1000 for run in stops[side])
             for side in ("running", "stopped")]
    took = stops["catch_up_s"]
    print(f"\n{len(took)} stops of replica {REPLICAS - 1} for "
          f"{options.stop_seconds:g} s, each beside the running intervals "
          f"around it; median with its 95 % interval\n\n"
          "| load | kop/s running | stopped | stopped / running "
          "| p99 us running / stopped | caught up after, s | target |\n"
          "|---|---|---|---|---|---|---|")
    p99 = [statistics.median(run["latency_us"]["p99"] for run in stops[side])
           for side in ("running", "stopped")]
    met = "" if stops_met(stops) else " SHORT"
    print(f"| {stops['row']} | {rates[0]:.1f} | {rates[1]:.1f} "
          f"| {ratio:.2f} ({low:.2f}-{high:.2f}) "
          f"| {p99[0]:.0f} / {p99[1]:.0f} "
          f"| {statistics.median(took):.2f} ({min(took):.2f}-{max(took):.2f}) "
          f"| >= {STOPPED_LEAST:g}{met} |", flush=True)


def missed(rows, facts, stops):
    """What is short of its target, a text each."""
    short = [f"{row.name}: {f} {rel} {bound:g}" for row in rows
             for f, rel, bound in row.targets if not is_met(row, f, rel, bound)]
    short += [fact[0] for fact in facts if not fact[4]]
    if stops and not stops_met(stops):
        short.append(f"{stops['row']}: stopped / running >= "
                     f"{STOPPED_LEAST:g}")
    return short


def print_facts(facts):
    print("\n| | quoind | redis | target |\n|---|---|---|---|")
    for what, a, b, target, met in facts:
        print(f"| {what} | {a:.3g} | {b:.3g} "
              f"| {target}{'' if met else ' SHORT'} |")


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
    parser.add_argument("--json", metavar="FILE", help="write all runs there")
    parser.add_argument("--quick", action="store_true",
                        help="500 requests per row on 1000 keys: does it "
                        "work?")
    parser.add_argument("--check", action="store_true",
                        help="exit status 1 if a target is missed")
    parser.add_argument("--list", action="store_true", help="names of the rows")
    options = parser.parse_args()
    if options.pairs < 1 or options.seconds <= 0:
        parser.error("--pairs and --seconds must be more than 0")
    if options.stops < 0 or options.stop_seconds <= 0:
        parser.error("--stops must not be negative, --stop-seconds more than "
                     "0")
    if options.quick:
        options.pairs = 1
        options.seconds = 0.1
        options.stops = min(options.stops, 2)
    for path in options.quoin, options.quoind:
        if path != "redis" and not os.access(path, os.X_OK):
            parser.error(f"{path} is no program: build it, or name another")
    if shutil.which("redis-server") is None:
        parser.error("redis-server is missing: apt-get install redis-server")
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
