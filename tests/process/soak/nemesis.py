"""The nemesis: a real quoind under load, whose replicas are killed, stopped
and continued at random.

    nemesis.py --kills 1000 --stops 200 --doubles 50
    nemesis.py --kills 300 --acceptor process --seed 7
    nemesis.py --kills 60 --stops 12 --doubles 3 --sum FILE   (a piece)

A fault is chosen by the seed: its kind (a kill, a stop of 10 ms to 5 s, two
kills at the same instant), its victim (by the role that INFO shows right
before: leader, acceptor, learner, or a joiner that has not caught up yet), and
whether the next fault waits until all replicas are current again. Sometimes a
second replica is killed while a first one is stopped. Faults that would lose
data by the specification are excluded: a replica in sync always survives, with
the process acceptor leader and acceptor are never lost together, and never are
all replicas stopped or dead.

Values have 16 bytes to 1 MiB, mostly few, or --value-size bytes: an emulated
device (`-- --transport udn`) takes seconds for large ones.

Meanwhile `quoin load --verify` sends requests to all replicas, at half of the
rate that a closed loop of the same connections reached before, and a ledger at
each replica counts the acknowledged writes. After every --round faults: the
verdict must be linearizable, all acknowledged writes present and no increment
applied twice, and all digests equal. Otherwise seed, faults, log and flight
recorders are kept in a directory whose name is printed, and the status is 1.
After every --group faults the server ends normally, and another one starts: a
replica that dies often is restarted with growing delays.

A long run may be split into pieces: --sum FILE adds the counts of each piece
to those in the file, and prints the sum.

Faults repeat with the seed, the timing of the machine does not.
"""
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from tests.process.lib import script
from tests.process.lib.checks import add_up, digests
from tests.process.lib.verified_load import (capacity, Failure, Ledger,
                                             VerifiedLoad)
from tests.process.lib.quoind import Quoind
from tests.process.lib.info_view import look, pids_of

FILL_BYTES = 32 << 20  # of the keys that lengthen joins
LONG_MS = 8000  # longer windows: log and flight recorders are kept
PATIENCE = 300.0  # s, for replicas to be current again; it ends a hang


def send(pids, signal_number):
    """@return False if one had just ended, from earlier faults."""
    missed = 0
    for pid in pids:
        try:
            os.kill(pid, signal_number)
        except ProcessLookupError:
            missed += 1
    return missed == 0


def sizes(count, rng):
    """@return a function that draws sizes as quoin load's `mixed` does: 16 to
    1 MiB, less if `count` of them would exceed FILL_BYTES on average."""
    most = min(max((FILL_BYTES / max(count, 1)) ** 2 / 16, 16), 1 << 20)
    root = (16 / most) ** 0.5
    return lambda: int(16 / (1 - rng.random() * (1 - root)) ** 2)


# ---- faults ----

class Nemesis:
    def __init__(self, o):
        self.o = o
        self.rng = random.Random(o.seed)
        self.left = collections.Counter(kill=o.kills, stop=o.stops,
                                        double=o.doubles)
        self.done = collections.Counter()
        self.roles = collections.Counter()
        self.log = []
        self.operations = self.groups = 0
        self.unavailable_ms = 0
        self.rates = []
        self.stopped = set()

    def say(self, text):
        line = "%9.3f  %s" % (time.monotonic() - self.began, text)
        self.log.append(line)
        if self.o.verbose:
            print(line, flush=True)

    # -- the victim --

    def survives(self, view, victims):
        """Whether the specification excludes a loss if these die now."""
        alive = set(pids_of(self.q)) - victims
        if not alive - self.stopped:
            return False
        if self.o.acceptor == "process":
            # Leader and acceptor are both needed, unless the other can take
            # over the role: so one of them may die, if all others live.
            return len(victims) == 1 and len(alive) == self.q.replicas - 1 \
                and all(view.online(i) for i in alive)
        pids = pids_of(self.q)
        return any(view.online(i) and view.pid(i) == pids[i]
                   for i in view.in_sync & alive)

    def view(self, but=()):
        """The view of a replica that can be expected to answer."""
        order = [i for i in range(self.q.replicas)
                 if i not in but and i not in self.stopped]
        self.rng.shuffle(order)
        return look(self.q, order)

    def pick(self, view, wanted):
        """A replica with that role, or any living one."""
        alive = sorted(set(pids_of(self.q)) - self.stopped)
        found = [i for i in alive if wanted in view.role(i)]
        return self.rng.choice(found or alive)

    # -- the fault --

    def kill(self, victims, view, what):
        pids = pids_of(self.q)
        victims = [i for i in victims if i in pids]
        if not victims or not self.survives(view, set(victims)):
            return False
        if not send([pids[i] for i in victims], signal.SIGKILL):
            return False
        roles = [view.role(i) for i in victims]
        for role in roles:
            for name in role.split("+"):
                self.roles[name] += 1
        self.done[what] += 1
        self.say("%s %s (epoch %d, in sync %s, said replica %d)" % (
            what, ", ".join("replica %d, %s" % x for x in zip(victims, roles)),
            view.epoch, sorted(view.in_sync), view.said_by))
        return True

    def fault_kill(self):
        wanted = self.rng.choice(("leader", "acceptor", "learner", "joiner",
                                  "joiner"))
        if wanted == "joiner":
            return self.fault_joiner()
        view = self.view()
        return view is not None and self.kill([self.pick(view, wanted)], view,
                                              "kill")

    def fault_joiner(self):
        """Kills one, and its next incarnation before it has caught up."""
        before = pids_of(self.q)
        view = self.view()
        victim = self.pick(view, "learner") if view is not None else None
        if view is None or not self.kill([victim], view, "kill"):
            return False
        self.left["kill"] -= 1
        deadline = time.monotonic() + PATIENCE
        while pids_of(self.q).get(victim) in (None, before.get(victim)):
            if time.monotonic() > deadline:
                raise Failure("replica %d is not started again" % victim)
            time.sleep(0.001)
        time.sleep(self.rng.random() ** 2 * self.o.join_ms / 1000)
        view = self.view(but=[victim])
        return self.left["kill"] > 0 and view is not None and \
            self.kill([victim], view, "kill")

    def fault_double(self):
        view = self.view()
        if view is None:
            return False
        victims = self.rng.sample(range(self.q.replicas), 2)
        return self.kill(victims, view, "double")

    def fault_stop(self):
        view = self.view()
        if view is None:
            return False
        pids = pids_of(self.q)
        wanted = self.rng.choice(("leader", "acceptor", "learner"))
        victims = {self.pick(view, wanted)}
        others = sorted(set(pids) - victims)
        if self.rng.random() < 0.25 and len(others) > 1:
            victims.add(self.rng.choice(others))
        if len(victims) >= len(pids):
            return False
        seconds = 0.01 * 500 ** self.rng.random()
        held = [pids[i] for i in victims]
        if not send(held, signal.SIGSTOP):
            send(held, signal.SIGCONT)
            return False
        self.stopped = victims
        self.say("stop %s for %.0f ms" % (", ".join(
            "replica %d, %s" % (i, view.role(i)) for i in sorted(victims)),
            seconds * 1000))
        self.done["stop"] += 1
        self.meanwhile(seconds, others)
        send(held, signal.SIGCONT)  # it was killed meanwhile
        self.stopped = set()
        self.say("continue")
        return True

    def meanwhile(self, seconds, others):
        """Sometimes another one dies while others are stopped."""
        time.sleep(seconds / 2)
        if self.left["kill"] > 0 and self.rng.random() < 0.2 and others:
            view = self.view()
            if view is not None and self.kill([self.rng.choice(others)], view,
                                              "kill"):
                self.left["kill"] -= 1
        time.sleep(seconds / 2)

    # -- rounds --

    def wait_current(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            view = self.view()
            pids = pids_of(self.q)
            if view is not None and len(pids) == self.q.replicas and \
                    view.current(pids):
                return
            if self.q.proc.poll() is not None:
                raise Failure("quoind has ended")
            if time.monotonic() > deadline:
                raise Failure("not current after %g s: %s" % (
                    PATIENCE, view and view.replica))
            time.sleep(0.002)

    def one_fault(self):
        kinds = [k for k in ("kill", "stop", "double") if self.left[k] > 0]
        kind = self.rng.choices(kinds, [self.left[k] for k in kinds])[0]
        if self.rng.random() < 0.6:
            self.wait_current()
        else:
            time.sleep(self.rng.random() * 0.3)
        if getattr(self, "fault_" + kind)():
            self.left[kind] -= 1
        else:  # not now: no replica in sync would survive
            self.wait_current()

    def round(self, faults, rate):
        verified = VerifiedLoad(self.q, self.o, rate)
        try:
            done = sum(self.done.values())
            while sum(self.done.values()) < done + faults and \
                    sum(self.left.values()) > 0:
                self.one_fault()
                if verified.process.poll() is not None:
                    raise Failure("quoin load has ended: status %d: %s" % (
                        verified.process.returncode,
                        verified.process.stderr.read()))
            self.wait_current()
            time.sleep(0.2)
            summary = verified.end()
        finally:
            verified.kill()
        self.operations += summary["verify"]["operations"]
        self.heard(verified, summary["unavailability"])

    def heard(self, verified, windows):
        """Prints the events of the longest unavailability window so far."""
        longest = max((s for s in windows if s["to"] == "all"),
                      key=lambda s: s["longest_ms"])
        if longest["longest_ms"] <= self.unavailable_ms:
            return
        self.unavailable_ms = longest["longest_ms"]
        offset = verified.began - self.began
        begin = offset + longest["began_s"]
        end = begin + self.unavailable_ms / 1000
        print("%9.3f  %s: no answer for %.0f ms; since a second before:" % (
            begin, longest["kind"], self.unavailable_ms))
        for line in self.log:
            if begin - 1 < float(line.split()[0]) < end + 0.1:
                print(line)
        print("           longest, ms: " + ", ".join(
            "%s at %s %.0f" % (s["kind"], s["to"], s["longest_ms"])
            for s in windows if s["kind"] in ("reads", "writes")))
        if self.unavailable_ms > LONG_MS:
            print("           kept in " + self.save("a silence"), flush=True)
        for s in verified.seconds:
            at = offset + s["at"]
            if begin < at < end + 2:
                print("%9.3f  the second before: %d answers, %d errors, %d "
                      "waiting, %d lost, %d disconnects" % (
                          at, s["ops"], s["errors"], s["waiting"],
                          s["unanswered"], s["disconnects"]))

    def settle(self, ledgers):
        """No writes: all data is present and equal everywhere."""
        for ledger in ledgers:
            ledger.stop.set()
        for ledger in ledgers:
            ledger.join()
        self.wait_current()
        for i in range(self.q.replicas):
            c = self.q.client(i)
            for ledger in ledgers:
                ledger.check(c, i)
            c.close()
        different = digests(self.q)
        if len(set(different)) != 1:
            raise Failure("digests differ: %s" % different)

    def fill(self):
        c = self.q.client(0)
        size = sizes(self.o.fill, random.Random(1)) \
            if self.o.value_size is None else lambda: self.o.value_size
        for first in range(0, self.o.fill, 100):
            c.pipeline(*[("SET", "fill:%d" % i, "x" * size()) for i in
                         range(first, min(first + 100, self.o.fill))])
        c.close()

    def calibrate(self):
        """The rate of this group's load."""
        if self.o.rate != "half":
            return self.o.rate
        self.rates.append(int(capacity(self.q, self.o) / 2))
        self.say("load: %d operations a second" % self.rates[-1])
        return str(self.rates[-1])

    def group(self):
        """One server from start to end."""
        self.fill()
        # otherwise the measured rate would be that of a replica that catches up
        self.wait_current()
        rate = self.calibrate()
        until = sum(self.done.values()) + self.o.group
        while sum(self.left.values()) > 0 and sum(self.done.values()) < until:
            ledgers = [Ledger(self.q, i) for i in range(self.q.replicas)]
            for ledger in ledgers:
                ledger.name += "@%d" % sum(self.done.values())
                ledger.start()
            self.round(min(self.o.round, until - sum(self.done.values())),
                       rate)
            self.settle(ledgers)
            self.report()

    def run(self):
        self.began = time.monotonic()
        while sum(self.left.values()) > 0:
            self.groups += 1
            with Quoind(self.o.quoind, args=["--acceptor", self.o.acceptor,
                                             *self.o.args]) as self.q:
                try:
                    self.group()
                except (Failure, AssertionError, OSError) as e:
                    self.keep(e)
                    return 1
            if self.q.status != 0:
                print("quoind ended with status %d:\n%s" % (self.q.status,
                                                            self.q.log))
                return 1
        if self.o.sum:
            self.add()
        return 0

    def add(self):
        """Adds the counts to those of earlier pieces."""
        total = add_up(self.o.sum, {
            "pieces": 1, "seconds": int(time.monotonic() - self.began),
            "groups": self.groups, "operations": self.operations,
            **{what + "s": n for what, n in self.done.items()},
            **{"killed " + role: n for role, n in self.roles.items()},
            "longest ms without an answer": self.unavailable_ms,
            "seeds": [self.o.seed], "rates": self.rates})
        print("sum: " + ", ".join("%s %s" % x for x in total.items()
                                  if x[0] not in ("seeds", "rates")))

    def report(self):
        print("%6.0f s  %s; roles killed: %s; %d operations linearizable; "
              "longest time without an answer %.0f ms" % (
                  time.monotonic() - self.began,
                  ", ".join("%d of %d %ss" % (
                      self.done[k], self.done[k] + self.left[k], k)
                      for k in ("kill", "stop", "double")),
                  ", ".join("%d %s" % (n, r)
                            for r, n in sorted(self.roles.items())) or "none",
                  self.operations, self.unavailable_ms), flush=True)

    def save(self, why):
        """Writes all diagnostics into a directory. @return its name."""
        where = tempfile.mkdtemp(prefix="nemesis-%d-" % self.o.seed)
        with open(where + "/faults", "w") as f:
            f.write("\n".join(self.log) + "\n\n%s\n" % why)
        with open(where + "/log", "wb") as f:
            self.q.errors.flush()
            f.write(os.pread(self.q.errors.fileno(), 1 << 26, 0))
        for i in range(self.q.replicas):
            done = subprocess.run(
                [self.o.quoin, "events", "--raw", *self.q.to([i])],
                capture_output=True)
            with open(where + "/events%d" % i, "wb") as f:
                f.write(done.stdout or done.stderr)
        return where

    def keep(self, why):
        """Diagnostics of a failure."""
        where = self.save(why)
        self.report()
        print("FAILED after %s\n%s\nseed %d; kept in %s" % (
            self.log[-1].strip() if self.log else "no fault", why,
            self.o.seed, where), flush=True)
        if self.o.freeze:
            input("replicas %s; Enter ends them" % pids_of(self.q))


def parse(text=__doc__, more=lambda p: None):
    """The options; `more` adds those of a script that extends this one."""
    p = script.parser(text)
    more(p)
    p.add_argument("--kills", type=int, default=20)
    p.add_argument("--stops", type=int, default=5)
    p.add_argument("--doubles", type=int, default=2,
                   help="two killed at once; memory acceptor only")
    p.add_argument("--round", type=int, default=25,
                   help="faults per check (%(default)s)")
    p.add_argument("--group", type=int, default=50,
                   help="faults per server (%(default)s)")
    p.add_argument("--sum", metavar="FILE",
                   help="add the counts to those in this file")
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    p.add_argument("--acceptor", choices=("memory", "process"),
                   default="memory")
    p.add_argument("--rate", default="half",
                   help="operations per second (half of the capacity)")
    p.add_argument("--keys", type=int, default=2000,
                   help="of the verified load (%(default)s)")
    p.add_argument("--value-size", type=int, metavar="BYTES",
                   help="of all values (mixed)")
    p.add_argument("--fill", type=int, default=200000,
                   help="more keys, so that joins take time")
    p.add_argument("--join-ms", type=float, default=60,
                   help="delay before a joiner is killed (%(default)s)")
    p.add_argument("--verbose", action="store_true", help="each fault")
    p.add_argument("--freeze", action="store_true",
                   help="keep the servers alive after a failure")
    p.add_argument("args", nargs="*", metavar="OPTION",
                   help="of quoind, behind --")
    o = script.options(p)
    if o.acceptor == "process" and o.doubles:
        print("no doubles with the process acceptor")
        o.doubles = 0
    return o


def main():
    o = parse()
    print("seed %d: %d kills, %d stops, %d doubles, acceptor: %s" % (
        o.seed, o.kills, o.stops, o.doubles, o.acceptor), flush=True)
    return Nemesis(o).run()


if __name__ == "__main__":
    sys.exit(main())
