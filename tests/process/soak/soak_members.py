"""Members come and go under a verified load, and processes end or stall
meanwhile: each change ends as done or not begun, and all answers are
linearizable.

    soak_members.py                     1 to 5 to 2 members and so on: 100 changes
    soak_members.py --changes 500 --seed 7 --value-size 16..64ki
    soak_members.py --faults 0          without kills and stops
    soak_members.py --quick             1 to 3 to 2, then a few changes with faults

A quoind with one replica and five seats. `quoin load --verify` runs at the common
port, with values of 16 bytes to 1 MiB. Each step adds a member, or removes one
(the leader in every third), by `quoin member`. In some steps the newcomer, its
donor, the leader, another member, or the supervisor is killed or stopped at a
random moment of the change. When the stopped ones go on, and a killed
supervisor is started again, all members must be online within 10 s: those that
the command says, or, if its outcome is not known, those of before or after. No
connection to the common port is refused, and none is reset while no process is
killed or stopped. One line per run; status 1 if it failed.
"""
import collections
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

from tests.process.cluster.adoption import kill_supervisor, pids_of, start_again
from tests.process.lib import script
from tests.process.lib.info_view import fields, info, look
from tests.process.lib.quoind import Client, Quoind
from tests.process.lib.verify import VerifiedLoad

SEATS = 5
SETTLED_S = 10.0
ORDER_S = 6.0  # QN_DRIVER_ORDER_MAX and a moment
LINE = re.compile(r"replica(\d+):state=(\w+),votes=(\w+),pid=(\d+)")
MIX = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


class Caller(threading.Thread):
    """A new connection to the common port for each request."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.answered, self.reset, self.wrong = port, 0, 0, []
        self.excused = False  # a process is killed or stopped
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            excused = self.excused
            try:
                c = Client(self.port, timeout=60)
                got = c.call("PING")
                c.close()
                self.answered += 1
                if got != b"PONG":
                    self.wrong.append("reply: %r" % got)
            except ConnectionResetError as e:
                self.reset += 1
                if not excused and not self.excused:
                    self.wrong.append("%r" % e)
            except ConnectionRefusedError as e:
                self.wrong.append("%r" % e)
            except ConnectionError:
                pass  # closed by a member that leaves, as in an upgrade
            time.sleep(0.01)  # closed ones keep their ports for a minute

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.join()


class Run:
    def __init__(self, o):
        self.o, self.random = o, random.Random(o.seed)
        self.given = {}
        self.count = collections.Counter()
        self.longest = 0.0

    def command(self, *words):
        return subprocess.Popen(
            [self.o.quoin, "member", *words, "--to",
             "127.0.0.1:%d" % self.q.port],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def members(self):
        """{replica: (state, votes)}; None: it is not answered."""
        p = self.command("list")
        out, _ = p.communicate()
        if p.returncode != 0:
            return None
        return {int(m[1]): (m[2], m[3]) for m in LINE.finditer(out)}

    def settled(self):
        """Which replicas are members, when all of them are online and no other
        process is there."""
        until = time.monotonic() + SETTLED_S * self.o.slow
        began = time.monotonic()
        while True:
            m = self.members()
            if m and set(m.values()) == {("online", "yes")} and \
                    set(pids_of(self.q)) == set(m):
                self.longest = max(self.longest, time.monotonic() - began)
                return set(m)
            if time.monotonic() > until:
                raise AssertionError("not settled after %g s: %r, processes %r" %
                                     (SETTLED_S, m, pids_of(self.q)))
            time.sleep(0.01)

    # ---- faults ----

    def leader(self, members):
        v = look(self.q, sorted(members))
        return v.leader if v is not None else min(members)

    def victim(self, members, changed):
        """A process that may end without a loss of the data, or that no one
        needs; None: the supervisor."""
        at = self.random.randrange(5)
        left = members - {changed}
        if at == 0 or len(left) < 3:
            return None if at < 2 else self.newcomer(members)
        if at == 1:
            return self.newcomer(members)
        if at == 2 and changed is None:
            return self.donor(members)
        return self.leader(members) if at == 3 else \
            self.random.choice(sorted(left))

    def snapshots(self, members):
        """Given so far, by each that answers."""
        given = {}
        for i in members:
            try:
                given[i] = int(fields(info(self.q, i), i, "snapshots")["given"])
            except (OSError, KeyError):
                pass
        return given

    def donor(self, members):
        """The member that gives a snapshot, or has just done so; any other one
        if none is seen to."""
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            for i in members:
                try:
                    line = fields(info(self.q, i), i, "snapshots")
                    if line["cut_bytes"] != "0" or \
                            int(line["given"]) > self.given.get(i, 0):
                        self.count["donors"] += 1
                        return i
                except (OSError, KeyError):
                    pass
        return self.random.choice(sorted(members))

    def newcomer(self, members):
        fresh = set(pids_of(self.q)) - members
        return min(fresh) if fresh else None

    def fault(self, members, changed, command):
        """@return what goes on afterwards."""
        self.caller.excused = True
        time.sleep(self.random.random() * self.random.choice([0.02, 0.2]))
        who = self.victim(members, changed)
        if who is None:
            self.count["supervisor killed"] += 1
            kill_supervisor(self.q)
            return lambda: start_again(self.q)
        pid = pids_of(self.q).get(who)
        if pid is None:
            return lambda: None
        stops = self.random.random() < 0.5
        self.count["stopped" if stops else "killed"] += 1
        try:
            os.kill(pid, signal.SIGSTOP if stops else signal.SIGKILL)
        except ProcessLookupError:
            pass
        if not stops:
            return lambda: None
        time.sleep(self.random.random() * 2)
        self.count["done beside a stopped one"] += command.poll() == 0

        def goes_on():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        return goes_on

    # ---- changes ----

    def choose(self, members):
        """The replica to remove; None: one is added."""
        n = len(members)
        if n == 1 or (n < SEATS and self.random.random() < 0.5):
            return None
        if self.random.random() < 0.3:
            return self.leader(members)
        return self.random.choice(sorted(members))

    def change(self, members, removed, faulty):
        """@return the members afterwards."""
        words = ["add"] if removed is None else \
            ["remove", "--replica", str(removed)]
        if faulty and removed is None:
            self.given = self.snapshots(members)
        p = self.command(*words)
        goes_on = self.fault(members, removed, p) if faulty else lambda: None
        goes_on()
        out, err = p.communicate()
        if p.returncode != 0 and faulty:
            time.sleep(ORDER_S)  # what is not known is done by then, or never
        now = self.settled()
        self.caller.excused = False
        if self.caller.wrong:
            raise AssertionError("common port: %r" % self.caller.wrong)
        after = members - {removed} if removed is not None else \
            members | (now - members)
        grown = len(now) == len(members) + (1 if removed is None else -1)
        if p.returncode == 0:
            self.count[words[0]] += 1
            if now != after or not grown:
                raise AssertionError("%s: %s: %r after %r" % (
                    words, out.strip(), now, members))
        elif not faulty:
            raise AssertionError("%s: %s" % (words, err.strip()))
        else:
            self.count["not done"] += 1
            unknown = "may still be done" in err or "closed" in err or \
                "reset" in err or "refused" in err
            if now != members and not (unknown and now == after and grown):
                raise AssertionError("%s: %s: %r after %r" % (
                    words, err.strip(), now, members))
        return now

    def steps(self):
        members = self.settled()
        for removed in None, None, self.leader(members):
            members = self.change(members, removed, False)
        for _ in range(self.o.changes - 3):
            faulty = self.random.random() < self.o.faults
            members = self.change(members, self.choose(members), faulty)
        return members

    def run(self):
        args = ["--value-size", self.o.value_size, "--mix", MIX,
                "--connections", "8", "--rate", str(self.o.rate),
                "--seconds", "100000"]  # until it is told to end
        with Quoind(self.o.quoind, replicas=1, seats=SEATS,
                    args=["--shutdown-timeout", "5"]) as self.q, \
                VerifiedLoad(self.q, self.o.quoin, *args,
                             to=[self.q.port]) as load, \
                Caller(self.q.port) as self.caller:
            load.answered(1)
            members = self.steps()
            load.answered(1)
            summary, text, status = load.end()
            verdict = (summary["verify"] or {}).get("verdict")
            if verdict != "linearizable" or status != 0:
                raise AssertionError("%s, status %d: %s" % (verdict, status,
                                                            text))
        if self.caller.wrong:
            raise AssertionError("common port: %r" % self.caller.wrong)
        if self.q.status != 0:
            raise AssertionError("quoind ended with status %d" % self.q.status)
        print("seed %d: %s; %d members; settled after %.2f s at most; %d "
              "operations; %d connections to the common port, %d reset by kills"
              % (self.o.seed, ", ".join(
                  "%d %s" % (n, what) for what, n in self.count.items()),
                  len(members), self.longest, summary["ops"],
                  self.caller.answered, self.caller.reset))


def parse():
    p = script.parser(__doc__)
    p.add_argument("--changes", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--faults", type=float, default=0.5,
                   help="part of the changes that a process is killed or "
                   "stopped in")
    p.add_argument("--value-size", default="mixed",
                   help="as quoin load --value-size (%(default)s: 16 bytes to "
                   "1 MiB, mostly small)")
    p.add_argument("--rate", type=int, default=2000, help="requests per second")
    p.add_argument("--slow", type=float, default=1,
                   help="times the limit; for a busy machine")
    p.add_argument("--quick", action="store_true")
    o = script.options(p)
    if o.quick:
        o.changes, o.rate, o.slow = 7, 300, 6
    return o


def main():
    o = parse()
    run = Run(o)
    try:
        run.run()
    except AssertionError as e:
        print("%s\nseed %d failed after %r: %s" % (
            getattr(run.q, "log", ""), o.seed, dict(run.count), e),
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
