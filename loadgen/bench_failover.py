#!/usr/bin/python3
"""How long clients of the surviving replicas wait when a replica of quoind is
killed (-9) or stands still (SIGSTOP).

For each number of keys a server with three replicas is started and filled. A
fault comes when all replicas are current, in the middle of a run of `quoin
load` (open loop) against the ports of the others; its figure is the longest
time without a successful answer there, of reads and of writes, whatever address
was silent longest. `none` is the same without a fault: what this machine does
by itself. `kill two` asks the survivor, from the first restart (as the flight
recorder knows it) until its next write is answered.

Whatever was started is ended, also on Ctrl-C.
"""
import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../tests/process"))

from quoind import Quoind  # noqa: E402
from view import look, pids_of  # noqa: E402

# What, whom, and the targets: median and most, ms.
KILL = (2, 25)
STOP = (None, 100)
FAULTS = {
    "memory": [("none", None, None), ("kill", "leader", KILL),
               ("kill", "learner", KILL), ("stop", "leader", STOP),
               ("stop", "learner", STOP), ("kill two", None, (None, 50))],
    "process": [("none", None, None), ("kill", "leader", KILL),
                ("kill", "acceptor", KILL), ("kill", "learner", KILL),
                ("stop", "leader", STOP), ("stop", "acceptor", STOP),
                ("stop", "learner", STOP)],
}


class Bench:
    def __init__(self, options):
        self.o = options

    def load(self, *args, to):
        addresses = [a for i in to
                     for a in ("--to", "127.0.0.1:%d" % (self.q.port + 1 + i))]
        return subprocess.Popen(
            [self.o.quoin, "load", "--json", "--threads", "1", "--key-size",
             "8", "--value-size", "16", *addresses, *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        out, text = process.communicate()
        if process.returncode != 0:
            sys.exit("quoin load: %s" % text)
        return json.loads(out.splitlines()[-1])

    def fill(self, keys):
        self.finish(self.load("--preload", "--keys", str(keys), "--requests",
                              "1", "--mix", "ping", "--warmup", "0",
                              "--connections", "32", "--pipeline", "64",
                              to=[0]))

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

    def silence(self, keys, what, role):
        """One fault; @return (reads, writes), ms."""
        view, pids = self.current()
        victim = next((i for i in range(3)
                       if role and role in view.role(i)), None)
        process = self.load(
            "--keys", str(keys), "--mix", "get,set", "--rate", self.o.rate,
            "--connections", "8", "--seconds", str(self.o.seconds),
            "--warmup", "0.3", to=[i for i in range(3) if i != victim])
        time.sleep(0.3 + self.o.seconds / 3)
        if what == "kill":
            os.kill(pids[victim], signal.SIGKILL)
        if what == "stop":
            os.kill(pids[victim], signal.SIGSTOP)
            time.sleep(self.o.seconds / 3)
            os.kill(pids[victim], signal.SIGCONT)
        found = {"reads": 0, "writes": 0}
        for s in self.finish(process)["silences"]:
            if s["kind"] in found:
                found[s["kind"]] = max(found[s["kind"]], s["longest_ms"])
        return found["reads"], found["writes"]

    def began(self, pid):
        """When that process began to be a replica, ns; None: not known."""
        done = subprocess.run(
            [self.o.quoin, "events", "--json", "--to",
             "127.0.0.1:%d" % (self.q.port + 1 + self.survivor)],
            capture_output=True, text=True)
        for line in done.stdout.splitlines():
            e = json.loads(line)
            if e["event"] == "begin" and e["what"]["pid"] == pid:
                return e["monotonic_ns"]
        return None

    def double(self, number):
        """Two at one instant; @return ms from the first restart to the next
        write that the survivor answers."""
        _, pids = self.current()
        self.survivor = number % 3
        c = self.q.client(self.survivor)
        c.call("SET", "probe", 0)
        dead = [i for i in range(3) if i != self.survivor]
        for i in dead:
            os.kill(pids[i], signal.SIGKILL)
        time.sleep(0.001)  # it has certainly reached them
        c.call("SET", "probe", 1)
        served = time.monotonic_ns()
        c.close()
        _, after = self.current()
        began = min(self.began(after[i]) for i in dead)
        return max(0, (served - began) / 1e6)

    def row(self, keys, what, role, target):
        n = self.o.faults
        if what == "kill two":
            figures = {"writes": [self.double(i) for i in range(n)]}
        else:
            pairs = [self.silence(keys, what, role) for _ in range(n)]
            figures = {"reads": [r for r, _ in pairs],
                       "writes": [w for _, w in pairs]}
        name = " ".join(x for x in (what, role) if x)
        row = {"keys": keys, "fault": name, "acceptor": self.o.acceptor,
               "ms": figures, "target_ms": target, "met": True}
        text = "%9d  %-14s" % (keys, name)
        for kind in "reads", "writes":
            values = figures.get(kind)
            text += "%10s %10s" % (("-", "-") if not values else (
                "%.1f" % statistics.median(values), "%.1f" % max(values)))
            if values and target:
                row["met"] &= (target[0] is None or
                               statistics.median(values) <= target[0])
                row["met"] &= max(values) <= target[1]
        if target:
            text += "   %s" % ("met" if row["met"] else "missed: %s" %
                               " and ".join("%s %g" % x for x in zip(
                                   ("median", "max"), target)
                                   if x[1] is not None))
        print(text, flush=True)
        return row

    def run(self):
        rows = []
        print("     keys  fault         %10s %10s%10s %10s   ms without an "
              "answer" % ("reads p50", "max", "writes p50", "max"), flush=True)
        for keys in self.o.keys:
            with Quoind(self.o.quoind, args=[
                    "--acceptor", self.o.acceptor]) as self.q:
                self.q.drains = False
                self.fill(keys)
                for what, role, target in FAULTS[self.o.acceptor]:
                    name = " ".join(x for x in (what, role) if x)
                    if re.search(self.o.only, name):
                        rows.append(self.row(keys, what, role, target))
        return rows


def parse():
    build = os.path.join(HERE, "../build/release")
    p = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quoind", default=build + "/kvs/quoind")
    p.add_argument("--quoin", default=build + "/loadgen/quoin")
    p.add_argument("--acceptor", choices=sorted(FAULTS), default="memory")
    p.add_argument("--faults", type=int, default=20,
                   help="of each kind (%(default)s)")
    p.add_argument("--keys", type=lambda t: [int(float(x)) for x in
                                             t.split(",")],
                   default=[10 ** 4, 5 * 10 ** 6], help="10000,5000000")
    p.add_argument("--rate", default="20k",
                   help="of the load, half of what the machine can "
                   "(%(default)s)")
    p.add_argument("--seconds", type=float, default=1.5,
                   help="of each run (%(default)s)")
    p.add_argument("--only", default="", metavar="REGEX", help="faults")
    p.add_argument("--json", metavar="FILE", help="write all figures there")
    p.add_argument("--quick", action="store_true",
                   help="one fault of each kind, 1000 keys: does it work?")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a target is missed")
    o = p.parse_args()
    if o.faults < 1 or o.seconds <= 0:
        p.error("--faults and --seconds must be more than 0")
    if o.quick:
        o.faults, o.keys, o.seconds, o.rate = 1, [1000], 0.9, "1k"
    for program in o.quoind, o.quoin:
        if shutil.which(program) is None:
            p.error("%s is no program: build it, or name another" % program)
    return o


def main():
    o = parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        rows = Bench(o).run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    if o.json:
        with open(o.json, "w") as f:
            json.dump({"options": vars(o), "rows": rows}, f, indent=1)
    return 1 if o.check and not all(r["met"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
