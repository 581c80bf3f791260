#!/usr/bin/python3
"""What clients of quoind see when members are added and removed.

A round has three runs, the first two in alternating order:

    upgrade   three replicas are replaced by those of another file (--upgrade)
    remove    of four replicas, the leader is removed (quoin member remove)
    add       the removed seat is taken again (quoin member add)

In `upgrade` and `remove` an open loop runs against the shared address, at half
of the server's capacity; the result is the longest time without a successful
answer, of reads and of writes. Shown is the median of the differences of a
round, remove minus upgrade, with its interval of 95 %.

In `add` a closed loop runs; the result is the rate of the worst second from the
order on, as a part of the median second before it.

The servers of the two kinds are two, of which one is idle at a time. All
started programs are ended, also on Ctrl-C.
"""
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))

from tests.process.cluster.adoption import launch  # noqa: E402
from tests.process.lib import script  # noqa: E402
from tests.process.lib.checks import wait_until  # noqa: E402
from tests.process.lib.info_view import info  # noqa: E402
from tests.process.lib.quoind import Quoind  # noqa: E402

SEATS = 4


def interval(values):
    """The median, and ends of its interval of 95 %, by order statistics."""
    v, n = sorted(values), len(values)
    k = max(0, int(n / 2 - 0.98 * n ** 0.5))
    return statistics.median(v), v[k], v[n - 1 - k]


class Server:
    def __init__(self, o, *args):
        self.o = o
        self.q = Quoind(o.quoind, args=args)

    def __enter__(self):
        self.q.__enter__()
        self.q.drains = False
        self.run_load("--preload", "--requests", "1", "--mix", "ping",
                      "--warmup", "0")
        done = self.run_load("--mix", "get,set", "--seconds", "1")
        self.rate = self.o.rate or int(done["ops_per_s"] / 2)
        return self

    def __exit__(self, *exc):
        return self.q.__exit__(*exc)

    def load(self, *args):
        return subprocess.Popen(
            [self.o.quoin, "load", "--json", "--threads", "2", "--keys",
             str(self.o.keys), "--interval", str(self.o.second), "--key-size", "8", "--value-size", "16",
             "--connections", "8", "--to", "127.0.0.1:%d" % self.q.port, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end_load(self, process):
        out, text = process.communicate()
        if process.returncode != 0:
            sys.exit("quoin load: " + text)
        return [json.loads(line) for line in out.splitlines()]

    def run_load(self, *args):
        return self.end_load(self.load(*args))[-1]

    def window(self, change):
        """@return the longest window without an answer while it happens, ms."""
        process = self.load("--mix", "get,set", "--rate", str(self.rate),
                            "--seconds", "100000", "--warmup", "0.3")
        time.sleep(0.8)
        change()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        return {s["kind"]: s["longest_ms"]
                for s in self.end_load(process)[-1]["unavailability"]
                if s["kind"] in ("reads", "writes")}

    def upgrade(self):
        with tempfile.TemporaryDirectory() as at:
            self.q.cmd[0] = shutil.copy(self.o.quoind, at)  # another file
            old, self.q.proc = self.q.proc, launch(self.q, "--upgrade")
            wait_until("3 replicas replaced", lambda: b"done: 3" in os.pread(
                self.q.ready.fileno(), 1 << 16, 0))
        old.wait()

    def member(self, *args):
        done = subprocess.run(
            [self.o.quoin, "member", *args, "--to",
             "127.0.0.1:%d" % self.q.port], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("quoin member: " + done.stderr)
        return done.stdout

    def leader(self):
        one = int(self.member("list").split(":")[0].removeprefix("replica"))
        return int(info(self.q, one)["leader"])

    def remove_leader(self):
        self.member("remove", "--replica", str(self.leader()))

    def add(self):
        """@return the worst second from the order on, of those before."""
        process = self.load("--mix", "get,set", "--seconds", "100000",
                            "--warmup", "0.3")
        time.sleep(0.3 + 4.1 * self.o.second)
        began = time.monotonic()
        self.member("add")
        self.took = time.monotonic() - began
        time.sleep(2.1 * self.o.second)
        process.send_signal(signal.SIGINT)
        rates = [s["ops_per_s"] for s in self.end_load(process)[:-1]]
        before, after = rates[:4], rates[4:-1]  # the last one is cut off
        return min(after) / statistics.median(before)


def run(o):
    rows = []
    print("round  upgrade ms: reads writes  remove ms: reads writes  "
          "add: worst second, took s", flush=True)
    with Server(o) as a, Server(o, "--replicas-max", str(SEATS)) as b:
        b.member("add")
        for k in range(o.rounds):
            runs = [("upgrade", lambda: a.window(a.upgrade)),
                    ("remove", lambda: b.window(b.remove_leader))]
            row = {name: f() for name, f in (runs[::-1] if k % 2 else runs)}
            row["add"] = b.add()
            row["took_s"] = b.took
            rows.append(row)
            print("%5d  %17.1f %6.1f  %16.1f %6.1f  %17.2f %7.2f" % (
                k, row["upgrade"]["reads"], row["upgrade"]["writes"],
                row["remove"]["reads"], row["remove"]["writes"], row["add"],
                row["took_s"]), flush=True)
    for kind in ("reads", "writes"):
        print("%s, remove - upgrade: %.1f ms (%.1f to %.1f)" % (
            (kind,) + interval([r["remove"][kind] - r["upgrade"][kind]
                                for r in rows])))
    print("add: the worst second of all had %.2f of the rate before" % min(
        r["add"] for r in rows))
    return rows


def parse():
    p = script.parser(__doc__)
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--keys", type=lambda t: int(float(t)), default=10 ** 4)
    p.add_argument("--rate", type=int, help="of the open loop, requests/s "
                   "(half of the capacity)")
    p.add_argument("--json", metavar="FILE", help="write all results there")
    p.add_argument("--quick", action="store_true",
                   help="one round, 1000 keys, short seconds: a check")
    o = script.options(p)
    o.second = 1
    if o.quick:
        o.rounds, o.keys, o.rate, o.second = 1, 1000, 1000, 0.2
    if o.rounds < 1 or o.keys < 1:
        p.error("--rounds and --keys must be more than 0")
    return o


if __name__ == "__main__":
    options = parse()
    script.end(lambda: {"options": vars(options), "rounds": run(options)},
               options)
