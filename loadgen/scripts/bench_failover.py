#!/usr/bin/python3
"""Waiting times of clients of the surviving replicas when a replica of quoind
is killed (-9) or stopped (SIGSTOP).

For each number of keys a server with three replicas is started and filled, and
its capacity measured: the rate of `quoin load` in a closed loop on the same
connections. An open loop then runs at half of that rate. A fault comes when
all replicas are current, in the middle of a run against the ports of the
others; the result is the longest time in that run without a successful answer
there, of reads and of writes, over all addresses.

Each run with a fault follows two runs of the same length without one: at the
same ports, and at as many redis-servers as there are survivors, under this
load only. They show the noise of this machine, in the columns on the right
(the larger of reads and writes). Where they are equal, the cost of the fault
cannot be measured. Runs are short for this reason: the longest of many
unavailability windows that occur anyway says nothing about the one caused by
the fault. The cost is the median of the differences to the run at the same
ports.

The load generator shares the cores with the servers at normal priority: with a
core to itself whenever it wants one (SCHED_FIFO) the replicas there did not
answer for 10 ms, without any fault, instead of 2. It has two threads, each of
which is often idle: one thread for all connections ran for 3 to 4 ms at a
time, until the next tick (perf sched), and a replica that woke on that core
waited as long.

`kill two` measures at the survivor, from the first restart (from the flight
recorder) until its next write is answered. `upgrade` hands the group over to
another quoind, replica by replica, under load at the shared address, where
connections end with the replica that accepted them.

All started programs are ended, also on Ctrl-C.
"""
import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))

from tests.process.lib import script  # noqa: E402
from tests.process.cluster.adoption import launch  # noqa: E402
from bench_processes import redis  # noqa: E402
from tests.process.lib.checks import wait_until  # noqa: E402
from tests.process.lib.quoind import Quoind  # noqa: E402
from tests.process.lib.info_view import look, pids_of  # noqa: E402

# Kind, victim, and the targets: median and maximum, ms.
KILL = (2, 25)
STOP = (None, 100)
SECONDS = {"kill": 0.2, "stop": 1.0}  # of a run; the fault is at a third
FAULTS = {
    "memory": [("kill", "leader", KILL),
               ("kill", "learner", KILL), ("stop", "leader", STOP),
               ("stop", "learner", STOP), ("kill two", None, (None, 50)),
               ("upgrade", None, (None, 100))],
    "process": [("kill", "leader", KILL), ("kill", "acceptor", KILL),
                ("kill", "learner", KILL),
                ("stop", "leader", STOP), ("stop", "acceptor", STOP),
                ("stop", "learner", STOP), ("upgrade", None, (None, 100))],
}


def larger(figures):
    """Of reads and writes, run by run."""
    return [max(both) for both in zip(*figures.values())]


@contextlib.contextmanager
def servers(count):
    """Starts this many redis-servers; their addresses, as options of quoin
    load."""
    with contextlib.ExitStack() as running:
        to = []
        for _ in range(count):
            one = redis()
            running.callback(one.stop)
            one.start()
            to += ["--to", "127.0.0.1:%d" % one.port]
        yield to


class Bench:
    def __init__(self, options):
        self.o = options

    def load(self, *args, to=None):
        """At the addresses of the options `to`, or at the shared one."""
        to = to or ["--to", "127.0.0.1:%d" % self.q.port]
        return subprocess.Popen(
            [self.o.quoin, "load", "--json", "--threads", "2", "--key-size",
             "8", "--value-size", "16", *to, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process, silent=False):
        """@param silent  A run in which nothing was answered is a result."""
        out, text = process.communicate()
        measured = silent and '"unavailability"' in out
        if process.returncode != 0 and not measured:
            sys.exit("quoin load: %s" % text)
        return json.loads(out.splitlines()[-1])

    def fill(self, keys, to):
        self.finish(self.load("--preload", "--keys", str(keys), "--requests",
                              "1", "--mix", "ping", "--warmup", "0",
                              "--connections", "32", "--pipeline", "64",
                              to=to))

    def current(self):
        """@return the view, once all replicas have caught up."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            view = look(self.q, range(3))
            pids = pids_of(self.q)
            if view is not None and len(pids) == 3 and view.current(pids):
                return view, pids
            time.sleep(0.01)
        sys.exit("the replicas do not become current again:\n" + self.log())

    def log(self):
        return os.pread(self.q.errors.fileno(), 1 << 20, 0).decode()[-4000:]

    def calibrate(self, keys):
        """The rate that the replicas reach on the connections of the load, per
        s."""
        done = self.finish(self.load(
            "--keys", str(keys), "--mix", "get,set", "--connections", "8",
            "--seconds", "1", "--warmup", "0.3", to=self.q.to()))
        return done["ops_per_s"]

    def open_loop(self, keys, seconds, to=None):
        return self.load(
            "--keys", str(keys), "--mix", "get,set", "--rate", str(self.rate),
            "--connections", "8", "--seconds", str(seconds), "--warmup", "0.3",
            to=to)

    def window(self, keys, what, role, seconds):
        """One run, with a fault if `what` is one; @return the longest
        unavailability window of reads and of writes, ms."""
        view, pids = self.current()
        victim = next(i for i in range(3) if role in view.role(i))
        process = self.open_loop(keys, seconds, self.q.to(
            [i for i in range(3) if i != victim]))
        time.sleep(0.3 + seconds / 3)
        if what == "kill":
            os.kill(pids[victim], signal.SIGKILL)
        if what == "stop":
            os.kill(pids[victim], signal.SIGSTOP)
            time.sleep(seconds / 3)
            os.kill(pids[victim], signal.SIGCONT)
        return self.longest(process)

    def longest(self, process):
        found = {"reads": 0, "writes": 0}
        for s in self.finish(process, silent=True)["unavailability"]:
            if s["kind"] in found:
                found[s["kind"]] = max(found[s["kind"]], s["longest_ms"])
        return found

    def upgrade(self, keys):
        """@return the same as window(), from before the first replica is
        replaced until after the last."""
        self.current()
        process = self.open_loop(keys, 100000)
        time.sleep(0.5)
        with tempfile.TemporaryDirectory() as at:
            self.q.cmd[0] = shutil.copy(self.o.quoind, at)  # another file
            old, self.q.proc = self.q.proc, launch(self.q, "--upgrade")
            wait_until("3 replicas replaced", lambda: b"done: 3" in os.pread(
                self.q.ready.fileno(), 1 << 16, 0))
        old.wait()
        process.send_signal(signal.SIGINT)
        return self.longest(process)

    def began(self, pid):
        """When that process became a replica, ns; None if unknown."""
        done = subprocess.run(
            [self.o.quoin, "events", "--json", *self.q.to([self.survivor])],
            capture_output=True, text=True)
        for line in done.stdout.splitlines():
            e = json.loads(line)
            if e["event"] == "begin" and e["what"]["pid"] == pid:
                return e["monotonic_ns"]
        return None

    def double(self, number):
        """Kills two at the same instant; @return ms from the first restart to
        the next write that the survivor answers."""
        _, pids = self.current()
        self.survivor = number % 3
        c = self.q.client(self.survivor)
        c.call("SET", "probe", 0)
        dead = [i for i in range(3) if i != self.survivor]
        for i in dead:
            os.kill(pids[i], signal.SIGKILL)
        time.sleep(0.001)  # it has reached them by now
        c.call("SET", "probe", 1)
        served = time.monotonic_ns()
        c.close()
        _, after = self.current()
        began = min(self.began(after[i]) for i in dead)
        return max(0, (served - began) / 1e6)

    def figures(self, keys, what, role):
        """@return the results with faults, without, and at Redis, ms."""
        if what == "kill two":
            return {"writes": [self.double(i)
                               for i in range(self.o.faults)]}, {}, {}
        if what == "upgrade":
            runs = [self.upgrade(keys) for _ in range(self.o.faults)]
            return {kind: [r[kind] for r in runs]
                    for kind in ("reads", "writes")}, {}, {}
        seconds = self.o.seconds or SECONDS[what]
        runs = [(self.longest(self.open_loop(keys, seconds, self.beside)),
                 self.window(keys, None, role, seconds),
                 self.window(keys, what, role, seconds))
                for _ in range(self.o.faults)]
        return tuple({kind: [run[i][kind] for run in runs]
                      for kind in ("reads", "writes")} for i in (2, 1, 0))

    def row(self, keys, what, role, target):
        got, without, at_redis = self.figures(keys, what, role)
        name = " ".join(x for x in (what, role) if x)
        median, most = target
        row = {"keys": keys, "fault": name, "acceptor": self.o.acceptor,
               "rate": self.rate, "ms": got, "without_ms": without,
               "redis_ms": at_redis,
               "target_ms": target}
        row["met"] = all(
            max(v) <= most and
            (median is None or statistics.median(v) <= median)
            for v in got.values())
        text = "%9d  %-13s" % (keys, name)
        for values in (got.get("reads"), got["writes"], larger(without),
                       larger(at_redis)):
            text += "  %6s %6s" % (("-", "-") if not values else (
                "%.1f" % statistics.median(values), "%.1f" % max(values)))
        if without:
            row["cost_ms"] = statistics.median(
                a - b for kind in got
                for a, b in zip(got[kind], without[kind]))
            text += "  %5.1f" % row["cost_ms"]
        else:
            text += "      -"
        print(text + "   " + ("met" if row["met"] else "missed: %s" % (
            " and ".join("%s %g" % x for x in zip(("median", "max"), target)
                         if x[1] is not None))), flush=True)
        return row

    def run(self):
        rows = []
        print("ms without an answer:         after a fault            "
              "without one      at Redis   cost\n"
              "     keys  fault            reads p50/max  writes p50/max  "
              "      p50/max       p50/max    p50", flush=True)
        for keys in self.o.keys:
            with Quoind(self.o.quoind, args=[
                    "--acceptor", self.o.acceptor]) as self.q, \
                    servers(2) as self.beside:
                self.q.drains = False
                self.fill(keys, self.q.to([0]))
                for i in range(0, len(self.beside), 2):
                    self.fill(keys, self.beside[i:i + 2])
                self.rate = self.o.rate or int(self.calibrate(keys) / 2)
                print("%9d  %d requests/s" % (keys, self.rate), flush=True)
                for what, role, target in FAULTS[self.o.acceptor]:
                    name = " ".join(x for x in (what, role) if x)
                    if re.search(self.o.only, name):
                        rows.append(self.row(keys, what, role, target))
        return rows


def parse():
    p = script.parser(__doc__)
    p.add_argument("--acceptor", choices=sorted(FAULTS), default="memory")
    p.add_argument("--faults", type=int, default=20,
                   help="of each kind (%(default)s)")
    p.add_argument("--keys", type=lambda t: [int(float(x)) for x in
                                             t.split(",")],
                   default=[10 ** 4, 5 * 10 ** 6], help="10000,5000000")
    p.add_argument("--rate", type=int, help="of the load, requests/s (half of "
                   "the capacity of the replicas)")
    p.add_argument("--seconds", type=float,
                   help="of each run (0.2, or 1 if a replica is stopped)")
    p.add_argument("--only", default="", metavar="REGEX", help="faults")
    p.add_argument("--json", metavar="FILE", help="write all results there")
    p.add_argument("--quick", action="store_true",
                   help="one fault of each kind, 1000 keys: a check")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a target is missed")
    o = script.options(p)
    if o.faults < 1 or (o.seconds or 1) <= 0:
        p.error("--faults and --seconds must be more than 0")
    if shutil.which("redis-server") is None:
        p.error("redis-server is not installed; install it to compare")
    if o.quick:
        o.faults, o.keys, o.seconds, o.rate = 1, [1000], 0.9, 1000
    return o


def main():
    o = parse()
    rows = script.end(lambda: {"options": vars(o), "rows": Bench(o).run()},
                      o)["rows"]
    return 1 if o.check and not all(r["met"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
