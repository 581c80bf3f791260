#!/usr/bin/python3
"""The cost for the other replicas of quoind when one rejoins.

Three replicas with --keys small keys each. `quoin load` drives two of them: in
a closed loop at full rate, or, with --share 0.5, in an open loop at half of
the rate that such a loop reached before. Their rate is measured, in steps of
50 ms:

    three     all are present
    two       the third one was killed (-9), and is not restarted: the
              supervisor is stopped (SIGSTOP) meanwhile
    rejoin    the supervisor continues: from here until the survivors' INFO
              shows the third one online again
    after     all are present again

and again. The rejoin is compared with both: with `two` for the cost of donor
and joiner, with the mean of `three` and `after` for the total loss of a
client. Medians of the repetitions, minimum and maximum.

All started programs are ended, also on Ctrl-C.
"""
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../.."))

from tests.process.lib import script  # noqa: E402
from tests.process.lib.quoind import Quoind  # noqa: E402
from tests.process.lib.info_view import look, pids_of  # noqa: E402

PATIENCE = 120.0  # s; it ends a hang
STEP = 0.05       # s, of the rates
SECONDS_MOST = 3.0
LOSS_MOST = 0.2
WINDOWS = ("three", "two", "rejoin", "after")


def ratio(a, b):
    """Not a number without operations: a window may be short, and a machine
    busy."""
    return a / b if b else math.nan


class Load:
    """A busy pair of replicas, and its rate at any time."""

    def __init__(self, q, o, to, rate=None):
        self.out = tempfile.TemporaryFile("w+")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [o.quoin, "load", *q.to(to), "--json", "--threads", "1",
             "--keys", str(o.keys), "--key-size", "8", "--value-size", "16",
             "--mix", o.mix, "--connections", str(o.connections), "--pipeline",
             str(o.pipeline), "--warmup", "0", "--seconds", "100000",
             "--interval", str(STEP),
             *(["--rate", str(rate)] if rate else [])],
            stdout=self.out, stderr=subprocess.PIPE, text=True)

    def wait(self):
        """Waits until it has begun: its clock is known to a step."""
        while not os.fstat(self.out.fileno()).st_size:
            if self.process.poll() is not None:
                sys.exit("quoin load: " + self.process.stderr.read())
            time.sleep(0.001)
        self.out.seek(0)
        at = json.loads(self.out.readline())["at"]
        self.began = time.monotonic() - at - STEP  # reported a step later

    def end(self):
        """@return [(from, to, ops)] on the monotonic clock."""
        self.process.send_signal(signal.SIGINT)
        _, text = self.process.communicate()
        if self.process.returncode != 0:
            sys.exit("quoin load: status %d: %s" % (self.process.returncode,
                                                   text))
        self.out.seek(0)
        steps = [json.loads(line) for line in self.out][:-1]
        self.out.close()
        return [(self.began + s["at"] - s["seconds"], self.began + s["at"],
                 s["ops"]) for s in steps]


def rate(steps, begin, end):
    """Operations per second from one time to another, k/s; a step that lies in
    both counts by its share."""
    ops = sum(n * max(0, min(b, end) - max(a, begin)) / (b - a)
              for a, b, n in steps)
    return ops / (end - begin) / 1000


class Bench:
    def __init__(self, options):
        self.o = options

    def fill(self):
        done = subprocess.run(
            [self.o.quoin, "load", *self.q.to([0]), "--preload",
             "--keys", str(self.o.keys), "--key-size", "8",
             "--value-size", "16", "--requests", "1", "--mix", "ping",
             "--warmup", "0", "--connections", "32", "--pipeline", "64"],
            capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("quoin load: " + done.stderr)

    def until(self, what, true):
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                sys.exit("never: " + what)
            time.sleep(0.005)

    def current(self):
        view = look(self.q, range(3))
        pids = pids_of(self.q)
        return view is not None and len(pids) == 3 and view.current(pids)

    def online(self, victim, old):
        view = look(self.q, [i for i in range(3) if i != victim])
        return view is not None and view.online(victim) and \
            view.pid(victim) not in (0, old)

    def away(self, victim):
        self.until("replica %d has ended" % victim,
                   lambda: victim not in pids_of(self.q))

    def once(self, role):
        """@return k/s by window, and the seconds of the rejoin."""
        self.until("current", self.current)
        view = look(self.q, range(3))
        victim = next(i for i in range(3) if role in view.role(i))
        pid = pids_of(self.q)[victim]
        others = [i for i in range(3) if i != victim]
        load = Load(self.q, self.o, others, self.share(others))
        load.wait()
        at = {}
        time.sleep(0.3)
        at["three"] = self.window()
        os.kill(self.q.proc.pid, signal.SIGSTOP)
        os.kill(pid, signal.SIGKILL)
        self.away(victim)
        time.sleep(0.3)
        at["two"] = self.window()
        begin = time.monotonic()
        os.kill(self.q.proc.pid, signal.SIGCONT)
        self.until("online", lambda: self.online(victim, pid))
        at["rejoin"] = begin, time.monotonic()
        time.sleep(0.3)
        at["after"] = self.window()
        steps = load.end()
        found = {w: rate(steps, *at[w]) for w in WINDOWS}
        found["seconds"] = at["rejoin"][1] - begin
        found["beside_two"] = ratio(found["rejoin"], found["two"])
        found["beside_three"] = ratio(2 * found["rejoin"],
                                      found["three"] + found["after"])
        return found

    def share(self, to):
        """Rate of the open loop, operations per second; None: closed loop."""
        if not self.o.share:
            return None
        load = Load(self.q, self.o, to)
        load.wait()
        time.sleep(0.3)
        span = self.window()
        return int(self.o.share * 1000 * rate(load.end(), *span))

    def window(self):
        begin = time.monotonic()
        time.sleep(self.o.seconds)
        return begin, time.monotonic()

    def run(self):
        rows = []
        print("role             three     two  rejoin   after kop/s, medians; "
              "seconds of rejoin (most); loss beside two, beside three",
              flush=True)
        with Quoind(self.o.quoind, args=self.o.args) as self.q:
            self.q.drains = False
            self.fill()
            for role in "learner", "leader":
                found = [self.once(role) for _ in range(self.o.times)]
                rows.append({"role": role, "runs": found})
                self.show(role, found)
        return rows

    @staticmethod
    def show(role, found):
        def text(name, form="%.0f", scale=1.0):
            values = sorted(scale * f[name] for f in found)
            return tuple(form % x for x in (statistics.median(values),
                                            values[0], values[-1]))

        def loss(name):
            ratios = [1 - f[name] for f in found]
            return "%.0f %% (%.0f to %.0f)" % tuple(
                100 * x for x in (statistics.median(ratios), min(ratios),
                                  max(ratios)))
        print("%-14s %s %9s (%s); %s, %s" % (
            role, " ".join("%7s" % text(w)[0] for w in WINDOWS),
            text("seconds", "%.2f")[0], text("seconds", "%.2f")[2],
            loss("beside_two"), loss("beside_three")), flush=True)


def is_met(row):
    """The loss of its clients, relative to three replicas before and after."""
    return max(f["seconds"] for f in row["runs"]) < SECONDS_MOST and \
        statistics.median(f["beside_three"] for f in row["runs"]) \
        >= 1 - LOSS_MOST


def parse():
    p = script.parser(__doc__)
    p.add_argument("--times", type=int, default=7,
                   help="repetitions per role (%(default)s)")
    p.add_argument("--keys", type=int, default=10 ** 6)
    p.add_argument("--seconds", type=float, default=1,
                   help="of each window except the rejoin (%(default)s)")
    p.add_argument("--mix", default="get,set")
    p.add_argument("--share", type=float, metavar="PART",
                   help="part of the capacity that is requested (all)")
    p.add_argument("--connections", type=int, default=32)
    p.add_argument("--pipeline", type=int, default=16)
    p.add_argument("--json", metavar="FILE", help="write all results there")
    p.add_argument("--quick", action="store_true",
                   help="1000 keys, once: only checks that it works")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if it takes 3 s or more, or the median "
                   "loss is more than 20 %%")
    p.add_argument("args", nargs="*", metavar="OPTION",
                   help="of quoind, behind --")
    o = script.options(p)
    if o.times < 1 or o.seconds <= 0:
        p.error("--times and --seconds must be more than 0")
    if o.quick:
        o.times, o.keys, o.seconds = 1, 1000, 0.2
    return o


def main():
    o = parse()
    rows = script.end(lambda: {"options": vars(o), "rows": Bench(o).run()},
                      o)["rows"]
    return 1 if o.check and not all(map(is_met, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
