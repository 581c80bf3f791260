"""Three processes of examples/store.c under load, which are killed, stopped and
come back: is every history linearizable, and are all alike at the end?

    trial.py --runs 200 --seed 1

In each run clients at every member set values of 16 B to 64 KiB, read, count
and delete, while members are killed (another process takes the seat) or stopped
for a while, the leader as often as others. A member is killed only if the
status of the living says that one more death is survived.

At the end all go on. Then, within --patience, each serves, and each client has an
answer. Every key is read at every member; `quoin verify` accepts the history,
no value was read that was not written, all states are equal, and the memory of
each process is as much as the group has told beforehand, at most.

Runs differ in clients and in how much of the log is kept: if little, one that
was stopped needs a snapshot.

The seed determines what is done when, and what the clients ask; the timing of
the machine differs. One line per run, and the sum; status 1 if a run failed.
"""
import argparse
import collections
import random
import sys

from tests.process.group.load import KEYS, Load
from tests.process.group.store import MIB, World, fields
from tests.process.lib.script import BUILD

LOG_MIB = (1, 4, 16)
CLIENTS = (1, 4, 30)  # of each member
SIZE_MAX = 64 << 10

class Fault:
    def __init__(self, rng, seconds):
        self.at = rng.uniform(0.1, seconds)
        self.kind = rng.choice(("kill", "stop"))
        self.leader = rng.random() < 0.5
        self.choice = rng.random()  # of the others
        self.length = 0.002 * 500 ** rng.random()  # until it comes back, s
        self.did = "not " + self.kind

    def __str__(self):
        return "%s %s %.0f ms" % (
            self.did, "leader" if self.leader else "other",
            self.length * 1000)


class Run:
    def __init__(self, o, number):
        rng = random.Random("%d %d" % (o.seed, number))
        self.o, self.number = o, number
        self.plan(rng)
        self.load_seed = rng.random()
        self.log_mib, self.clients = rng.choice(LOG_MIB), rng.choice(CLIENTS)
        self.wrong = []
        self.returning = set()  # members that will be started again
        self.gone = set()  # those that will not
        self.lag = self.log_max = self.shared_max = 0
        self.installed = self.given = 0

    def plan(self, rng):
        self.faults = sorted(
            (Fault(rng, self.o.seconds) for _ in range(self.o.faults)),
            key=lambda f: f.at)

    def run(self):
        self.world = self.make_world()
        self.load = Load(self.world, self.load_seed, SIZE_MAX)
        self.load.gone = self.gone
        try:
            self.begin()
            self.disturb()
            self.heal()
            self.judge()
        except AssertionError as e:
            self.wrong.append(str(e))
        finally:
            self.memory()
            self.world.close()
        return self

    def make_world(self):
        return World(self.o.store, self.o.members, self.log_mib)

    # ---- what happens

    def begin(self):
        for i in range(self.o.members):
            self.world.start(i)
        self.all_serve()
        for i in range(self.o.members):
            self.load.begin(i, self.clients)
        self.watch()

    def watch(self):
        for m in self.world.member.values():
            m.weigh()
        if not self.load.over:
            self.world.after(0.05, self.watch)

    def awake(self):
        return [m for m in self.world.member.values()
                if not m.stopped and not m.ended]

    def statuses(self):
        """Of those that run and have a state, by index."""
        said = self.world.answers("status", self.o.patience, self.awake())
        got = self.said = {i: fields(a) for i, a in said.items()
                           if a is not None}
        got = {i: s for i, s in got.items() if s["phase"] == "serving"}
        for s in got.values():
            self.shared_max = len(self.world.member) * s["shared_max"] + MIB
            self.log_max = s["log_max"]
        if got:
            applied = [s["applied"] for s in got.values()]
            self.lag = max(self.lag, max(applied) - min(applied))
        return got

    def disturb(self):
        ended = []
        for f in self.faults:
            self.world.after(f.at, lambda f=f: ended.append(f))
        self.world.after(self.o.seconds, lambda: ended.append(None))
        while not ended or ended[-1] is not None:
            self.world.turn(0.05)
            while ended and ended[0] is not None:
                self.harm(ended.pop(0))

    def harm(self, f):
        got = self.statuses()
        if not got:
            return
        leader = max(got.values(), key=lambda s: s["applied"])["leader"]
        able = sorted(i for i, s in got.items()
                      if (s["seat"] == leader) == f.leader)
        if not able or f.kind == "kill" and not self.survives(got):
            return
        i = able[int(f.choice * len(able))]
        self.strike(f, i)

    def strike(self, f, i):
        f.did = f.kind
        self.returning.add(i)
        if f.kind == "kill":
            self.world.kill(i)
        else:
            self.world.stop(i)
        self.world.after(f.length, lambda: self.come_back(f, i))

    def survives(self, got):
        """All that live say that one more death is survived. What they say may
        be older than the last one."""
        living = sum(not m.ended for m in self.world.member.values())
        return all(s["deaths"] >= 1 and s["members"].bit_count() == living
                   for s in got.values())

    def come_back(self, f, i):
        m = self.world.member[i]
        if f.kind == "stop":
            self.world.go_on(i)
        elif i in self.gone:
            pass
        elif m.ended:
            self.world.start(i)
        else:  # its end has not been seen yet
            self.world.after(0.001, lambda: self.come_back(f, i))
            return
        self.returning.discard(i)

    # ---- what must be so

    def meant(self):
        """Members that are to live, once all have come back."""
        return [m for i, m in self.world.member.items() if i not in self.gone]

    def all_serve(self):
        self.world.until(
            lambda: "all serve: %s" % self.statuses(),
            lambda: len(self.statuses()) == len(self.meant()),
            self.o.patience)

    def heal(self):
        self.world.until("all have come back", lambda: not self.returning,
                         self.o.patience)
        since = self.load.history.ended
        self.all_serve()
        self.world.until(
            lambda: "clients at each member have answers: %s" % {
                i: fields(s) for i, s in self.world.answers(
                    "status", self.o.patience, self.awake()).items()},
            lambda: all(self.load.progress.get(m.index, 0) > since
                        for m in self.meant()), self.o.patience)

    def judge(self):
        members = self.meant()
        self.load.end(self.o.patience)
        self.load.read_all(members, self.o.patience)
        for m in members:
            if m.process.poll() is not None:
                self.wrong.append("member %d has ended" % m.index)
        self.world.until(lambda: "equal states: %s" % self.digests(members),
                         lambda: len(set(self.digests(members))) == 1,
                         self.o.patience)
        for s in self.statuses().values():
            self.installed += s["installed"]
            self.given += s["given"]
        self.wrong += self.load.history.wrong
        said = self.load.history.verify(self.o.quoin,
                                        self.world.folder + "/history")
        if said is not None:
            self.wrong.append("not linearizable:\n" + said)

    def digests(self, members):
        return sorted(self.world.answers("digest", self.o.patience,
                                         members).values())

    def memory(self):
        self.anonymous = max(m.anonymous for m in self.world.past)
        self.shared = max(m.shared for m in self.world.past)
        if not self.o.sanitized and (self.anonymous > self.anonymous_max() or
                                     self.shared > self.shared_max):
            self.wrong.append("too much memory")

    def counts(self):
        found = {"runs": 1, "wrong": int(bool(self.wrong)),
                 "answers": self.load.history.ended,
                 "unknown": self.load.history.unknown,
                 "snapshots": self.installed}
        for kind, name in (("kill", "killed"), ("stop", "stopped")):
            did = [f for f in self.faults if f.did == kind]
            found[name] = len(did)
            found["leaders " + name] = sum(f.leader for f in did)
        return found

    def story(self):
        return self.faults

    def anonymous_max(self):
        """The state, one that is given and one that comes; the log; own
        proposals; and as much again, for what malloc keeps."""
        return 2 * (3 * KEYS * SIZE_MAX + self.log_max +
                    self.clients * SIZE_MAX)

    def __str__(self):
        h = self.load.history
        return ("log %d MiB, %d clients, %s: %d answers, %d unknown, refused %s, lag %d, %d snapshots, "
                "memory %.1f + %.1f MiB, %s" % (
                    self.log_mib, self.clients,
                    ", ".join(map(str, self.story())), h.ended, h.unknown,
                    self.load.refused, self.lag, self.installed,
                    self.anonymous / MIB, self.shared / MIB,
                    "; ".join(self.wrong) or "well"))


def parser(text):
    p = argparse.ArgumentParser(
        description=text, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--store", default=BUILD + "/examples/store")
    p.add_argument("--quoin", default=BUILD + "/loadgen/quoin")
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--first", type=int, default=0, help="number of the first")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--members", type=int, default=3)
    p.add_argument("--patience", type=float, default=10,
                   help="from when all go on until all is well, s")
    p.add_argument("--sanitized", action="store_true",
                   help="of memory there is no verdict")
    return p


def do(runs, o):
    """A line of each run, and their sum. @return the exit status."""
    total = collections.Counter()
    for number in range(o.first, o.first + o.runs):
        r = runs(o, number).run()
        print("run %d: %s" % (number, r), flush=True)
        total.update(r.counts())
    print(", ".join("%s %d" % x for x in total.items()))
    return int(total["wrong"] > 0)


def main():
    p = parser(__doc__)
    p.add_argument("--seconds", type=float, default=1.5, help="of a run")
    p.add_argument("--faults", type=int, default=4, help="in a run")
    return do(Run, p.parse_args())


if __name__ == "__main__":
    sys.exit(main())
