"""Followers stop under full load of large values and continue, and the leader
dies: is every acknowledged write present?

    soak_loss.py --runs 200 --seed 1            memory acceptor
    soak_loss.py --runs 200 --acceptor process
    soak_loss.py --runs 50 --stopped            min-replicas-to-write 0

Each run has its own server. Both followers are stopped, together or 0.5 s
apart, for 0.2, 1, 1.5, 3 or 10 s; the leader is killed 0 to 500 ms after the
last one continues. Load and markers are written at the leader until it dies.
Then each of the other two must have every acknowledged marker, and accept
writes.

--stopped: the leader waits for no follower, they are stopped for 5 s, and the
leader is killed 20 ms after. If a write was lost: the log has one error line
whose positions are those of the remaining replicas and reach as far as the
leader had come, INFO has group:stopped, a write is refused, and the server
ends with a status that is not 0. In every second run `quoin recover` continues
the group first; then it accepts writes, markers are in fact missing, and the
status is 0. If no write was lost: none of these.

The seed determines times and lengths; the timing of the machine differs. One
line per run, and the sum; status 1 if a run failed.
"""
import random
import signal
import subprocess
import sys
import time

from tests.process.lib import heavy
from tests.process.lib import verdicts
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.info_view import fields, info, look, pids_of

LENGTHS = (0.2, 1.0, 1.5, 3.0, 10.0)
APART = (0.0, 0.5)


class Plan:
    """The schedule of one run."""

    def __init__(self, o, number):
        rng = random.Random("%d %d" % (o.seed, number))
        self.warm = 0.2 if o.quick else 1.0
        self.apart = rng.choice(APART)
        self.length = rng.choice(LENGTHS)
        self.after = rng.uniform(0, 0.5)
        self.recover = number % 2 == 0
        if o.stopped:
            self.apart, self.length, self.after = 0.0, 5.0, 0.02
        if o.quick:
            self.apart, self.length = 0.0, 0.2

    def __str__(self):
        return "%.1f s apart, stopped %.1f s, killed %3.0f ms after" % (
            self.apart, self.length, self.after * 1000)


def stop_and_kill(plan, leader, followers, meanwhile):
    """Each follower is stopped for the length; then the leader is killed.
    `meanwhile` is called while the last one is stopped."""
    began = time.monotonic()
    todo = sorted([(plan.apart * i, signal.SIGSTOP, pid)
                   for i, pid in enumerate(followers)] +
                  [(plan.apart * i + plan.length, signal.SIGCONT, pid)
                   for i, pid in enumerate(followers)] +
                  [(plan.apart + plan.length + plan.after, signal.SIGKILL,
                    leader), (plan.apart + plan.length / 2, 0, leader)])
    for at, number, pid in todo:
        time.sleep(max(0.0, began + at - time.monotonic()))
        if number:
            heavy.send(pid, number)
        else:
            meanwhile()


def state(q, replica):
    """The state of the group in INFO; "" without an answer."""
    try:
        return info(q, replica).get("group", "")
    except (OSError, AttributeError):
        return ""


def position(q, replica, what):
    """`applied` or `learned` of a replica, as it reports itself."""
    return int(fields(info(q, replica), replica)[what])


def refused(q, replica):
    """A write is answered with an error."""
    c = Client(q.port + 1 + replica, timeout=heavy.PATIENCE)
    got = c.call("SET", "refused", "1")
    c.close()
    return isinstance(got, Error)


class Run:
    def __init__(self, o, number):
        self.o = o
        self.plan = Plan(o, number)
        self.wrong = []
        self.lost = self.markers = None
        self.stopped = False  # now
        self.before = 0

    def server(self):
        args = ["--acceptor", self.o.acceptor, "--commit-timeout", "3"]
        if self.o.stopped:
            args += ["--min-replicas-to-write", "0"]
        return Quoind(self.o.quoind, args=[*args, *self.o.args])

    def run(self):
        self.q = self.server()
        with self.q:
            try:
                self.disturb()
                self.verdict()
            except (RuntimeError, OSError) as e:
                self.wrong.append(str(e))
            self.q.drains = not self.wrong
            if self.wrong:
                print(self.q.log_so_far()[-4000:], file=sys.stderr)
        if not self.wrong:
            self.wrong += verdicts.ended(self.q.status, self.stopped)
        return self

    def disturb(self):
        heavy.wait_for("all current", lambda: heavy.current(self.q))
        self.leader = look(self.q, range(3)).leader
        self.others = [i for i in range(3) if i != self.leader]
        pids = pids_of(self.q)
        with heavy.Load(self.q, self.o, self.asked(), step=0.1):
            self.markers = heavy.Markers(self.q, self.leader)
            heavy.wait_for("a marker is acknowledged", self.markers.begun)
            time.sleep(self.plan.warm)
            stop_and_kill(self.plan, pids[self.leader],
                          [pids[i] for i in self.others], self.look)
            self.markers.join()

    def look(self):
        if self.o.stopped:
            self.before = position(self.q, self.leader, "applied")

    def asked(self):
        return [self.leader] if self.o.at == "leader" else None

    def settled(self):
        """The two others serve, or report that the group has stopped."""
        return heavy.serves(self.q, self.others) or \
            all(state(self.q, i) == "stopped" for i in self.others)

    def verdict(self):
        try:
            heavy.wait_for("group:%s, and neither serves nor says that it has "
                           "stopped" % state(self.q, self.others[0]),
                           self.settled, self.q.proc)
        finally:
            self.stopped = any(state(self.q, i) == "stopped"
                               for i in self.others)
        if self.stopped:
            self.lost = "the group has stopped"
            self.judge_stopped()
        else:
            missing = self.missing()
            self.lost = "%d of %d markers" % (
                missing, len(self.markers.kept)) if missing else None
            self.wrong += verdicts.lives_on(
                heavy.log_lines(self.q), len(self.markers.kept), missing)

    def missing(self):
        return max(len(self.markers.missing(i)) for i in self.others)

    def judge_stopped(self):
        if not self.o.stopped:
            self.wrong.append(self.lost)
            return
        self.wrong += verdicts.stopped(
            heavy.log_lines(self.q),
            {i: position(self.q, i, "learned") for i in self.others},
            self.before)
        for i in self.others:
            if not refused(self.q, i):
                self.wrong.append("replica %d takes a write" % i)
        if self.plan.recover:
            self.recover()

    def recover(self):
        done = subprocess.run(
            [self.o.quoin, "recover", "--yes", *self.q.to(self.others[:1])],
            stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            self.wrong.append("recover: " + done.stderr.strip())
            return
        heavy.wait_for("it serves after quoin recover",
                       lambda: heavy.serves(self.q, self.others))
        self.stopped = False
        self.lost = "%d of %d markers" % (self.missing(),
                                          len(self.markers.kept))
        if self.missing() == 0:
            self.wrong.append("a loss is reported, and no marker is missing")


def parse():
    p = heavy.parser(__doc__, 0.0)
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--stopped", action="store_true")
    p.add_argument("--at", choices=("leader", "all"), default="leader",
                   help="target of the load (leader)")
    o = heavy.options(p)
    if o.stopped and b"--min-replicas-to-write" not in subprocess.run(
            [o.quoind, "--help"], capture_output=True).stdout:
        p.error("--stopped: this quoind has no --min-replicas-to-write")
    if o.quick:
        o.runs = 1
    return o


def run(o):
    found = {"runs": 0, "wrong": 0, "lost": 0, "markers": 0}
    for number in range(o.runs):
        one = Run(o, number).run()
        found["runs"] += 1
        found["wrong"] += bool(one.wrong)
        found["lost"] += bool(one.lost)
        kept = len(one.markers.kept) if one.markers else 0
        found["markers"] += kept
        print("run %3d: %s: %d markers, %s" % (
            number, one.plan, kept, "; ".join(one.wrong) or
            ("lost and told: " + one.lost if one.lost else "all there")),
            flush=True)
    print(", ".join("%s %d" % x for x in found.items()))
    return found


def main():
    o = parse()
    return int(heavy.script.end(lambda: run(o), o)["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
