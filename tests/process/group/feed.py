"""Processes that follow the changes of three members from outside, and are
killed and stopped as the members are: has each what was decided, in order and
at least once, or does it say what it misses?

    feed.py --runs 100 --seed 1

As trial.py, with processes of examples/follow.c, as many as members, each at
one member until that ends, then at the next. Members and these processes are
killed or stopped, and come back. Runs differ in how much of the log and of the
changes is kept, and whether they are also while none follows: if little, what
was stopped too long gets a snapshot, or a copy of the state, and a gap is
reported.

At the end one more change is made. When all have it, their journals are read
(journal.py): what was decided at a position is the same in all; each has it in
order, or in a reported gap; the last copy of the state and the changes behind
it make the members' state; each value was decided once at most, and each that
was acknowledged once, unless it may lie in a gap of all.
"""
import os
import random
import re
import signal
import subprocess
import sys

from tests.process.group import trial
from tests.process.group.journal import (Journal, missed_by_all, together)
from tests.process.group.load import COUNTERS, KEYS
from tests.process.group.store import MIB, World

trial.SIZE_MAX = 8 << 10
FEED_KIB = (16, 256, 4096)
LAST = "last change"


class Follower:
    """A process that follows, from its first start to the end of the run."""

    def __init__(self, world, program, index):
        self.world, self.program, self.index = world, program, index
        self.path = "%s/journal%d" % (world.folder, index)
        self.start()

    def start(self):
        n = self.world.members
        paths = [self.world.socket((self.index + k) % n) for k in range(n)]
        self.process = subprocess.Popen([self.program, self.path, *paths])

    def kill(self):
        self.process.kill()
        self.process.wait()

    def has(self, text):
        """Is that at the end of its journal?"""
        try:
            with open(self.path, "rb") as f:
                f.seek(max(0, os.path.getsize(self.path) - 4096))
                return text in f.read()
        except OSError:
            return False


class FollowedWorld(World):
    def __init__(self, program, members, log_mib, feed_kib, retain):
        super().__init__(program, members, log_mib)
        self.members, self.feed_kib = members, feed_kib
        self.retain = ["retain"] if retain else []

    def socket(self, i):
        return "%s/feed%d" % (self.folder, i)

    def command_of(self, i):
        return self.command + [str(self.feed_kib), self.socket(i),
                               *self.retain]


class Fault(trial.Fault):
    def __init__(self, rng, seconds):
        super().__init__(rng, seconds)
        self.follower = rng.random() < 0.5
        self.leader = self.leader and not self.follower

    def __str__(self):
        return super().__str__().replace(
            "other", "follower" if self.follower else "other")


class Run(trial.Run):
    def plan(self, rng):
        self.faults = sorted(
            (Fault(rng, self.o.seconds) for _ in range(self.o.faults)),
            key=lambda f: f.at)
        self.feed_kib, self.retain = rng.choice(FEED_KIB), rng.random() < 0.6
        self.followers, self.journals, self.decided = [], [], {}

    def make_world(self):
        return FollowedWorld(self.o.store, self.o.members, self.log_mib,
                             self.feed_kib, self.retain)

    def run(self):
        try:
            return super().run()
        finally:
            for f in self.followers:
                f.kill()

    def begin(self):
        super().begin()
        for i in range(self.o.members):
            self.followers.append(Follower(self.world, self.o.follow, i))

    # ---- what happens

    def harm(self, f):
        if not f.follower:
            super().harm(f)
            return
        one = self.followers[int(f.choice * len(self.followers))]
        if one in self.returning:
            return
        f.did = f.kind
        self.returning.add(one)
        if f.kind == "kill":
            one.kill()
        else:
            one.process.send_signal(signal.SIGSTOP)
        self.world.after(f.length, lambda: self.follow_again(f, one))

    def follow_again(self, f, one):
        if f.kind == "kill":
            one.start()
        else:
            one.process.send_signal(signal.SIGCONT)
        self.returning.discard(one)

    # ---- what must be so

    def judge(self):
        super().judge()
        m = self.world.member[0]
        self.world.until(
            "the last change", lambda: self.world.answers(
                "set last " + LAST, self.o.patience, [m])[0] == "ok",
            self.o.patience)
        self.world.until("all followers have the last change", lambda: all(
            f.has(LAST.encode()) for f in self.followers), self.o.patience)
        self.journals = [Journal(f.path) for f in self.followers]
        self.decided, wrong = together(self.journals)
        self.wrong += wrong
        for f, j in zip(self.followers, self.journals):
            self.wrong += ["follower %d: %s" % (f.index, text)
                           for text in j.judge(self.decided)]
        self.judge_values()
        self.judge_states(m)

    def judge_values(self):
        decided = [int(d[-1].split(b" ", 3)[2]) for d in self.decided.values()
                   if d[-1].startswith(b"set k")]
        if len(set(decided)) != len(decided):
            self.wrong.append("a value was decided twice")
        acknowledged = {int(found[1]) for found in (
            re.search(r" set k\d+ (\d+) -> ok$", line)
            for line in self.load.history.lines) if found}
        lost = acknowledged - set(decided)
        if lost and not missed_by_all(self.journals):
            self.wrong.append("%d acknowledged values are in no journal, and "
                              "in no gap of all" % len(lost))

    def judge_states(self, m):
        for name in ["k%d" % i for i in range(KEYS)] + [
                "c%d" % i for i in range(COUNTERS)]:
            said = self.world.answers("get " + name, self.o.patience, [m])[0]
            for f, j in zip(self.followers, self.journals):
                value = j.state.get(name.encode())
                if said != ("none" if value is None
                            else "is " + value.decode()):
                    self.wrong.append("follower %d has another value of %s" % (
                        f.index, name))

    # ---- what is said

    def anonymous_max(self):
        """The changes, what is said of each, and what a process reads late."""
        return super().anonymous_max() + 4 * (self.feed_kib << 10) + 2 * MIB

    def counts(self):
        did = [f for f in self.faults if f.follower and f.did == f.kind]
        found = super().counts()
        for kind, name in (("kill", "killed"), ("stop", "stopped")):
            found["followers " + name] = sum(f.kind == kind for f in did)
            found[name] -= found["followers " + name]
        return {**found,
                "commands": len(self.decided),
                "read again": sum(j.again for j in self.journals),
                "gaps": sum(len(j.gaps) for j in self.journals),
                "copies": sum(j.copies for j in self.journals),
                "complete": int(not missed_by_all(self.journals))}

    def __str__(self):
        return "feed %d KiB%s, %d commands, gaps %s, again %s; %s" % (
            self.feed_kib, " retained" * self.retain, len(self.decided),
            [len(j.gaps) for j in self.journals],
            [j.again for j in self.journals], super().__str__())


def main():
    p = trial.parser(__doc__)
    p.add_argument("--follow", default=trial.BUILD + "/examples/follow")
    p.add_argument("--seconds", type=float, default=1, help="of a run")
    p.add_argument("--faults", type=int, default=6, help="in a run")
    return trial.do(Run, p.parse_args())


if __name__ == "__main__":
    sys.exit(main())
