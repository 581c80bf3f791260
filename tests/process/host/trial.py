"""Three processes of host.c, each of which does to its groups all that a lawful
program may do, while one of them dies: do the groups leave it as it was, and
does each proposal and each barrier end?

    trial.py --loop poll|epoll|libuv --runs 100 --seed 1

In each run all three have that loop, and a second group, or none: in the same
thread, in a thread of its own with any loop, or in one of the library; or a
second thread of each is a member of the first group; or there is none, and its
thread has left its list of robust mutexes to the group. Then:

  - Each begins proposals, barriers and changes at drawn moments, on both
    groups, three times. All end, most without a timeout: only the group's own
    descriptor leads to a turn, so a wake-up that was lost is found (--patience,
    far more than any deadline).
  - Some are begun singly, while all others sleep.
  - Once, in the midst of it or while all sleep, one is killed. It had locked a
    robust mutex in each thread: the others find them as of an owner that has
    died. It had forked children, which live on with what they have inherited:
    yet the others see its end, and another process takes its seat, the only
    vacant one.
  - Before, some such processes are killed while they come, also while the
    others are stopped: these answer to one that has died.
  - At the end states are equal, and each leaves: handlers, masks, timer,
    environment and exit handlers are as they were, and nothing was printed.

A line per run, and the sum: also how many runs have forked a child in each
place. Status 1 if a run failed.
"""
import argparse
import collections
import os
import random
import signal
import sys
import time

from tests.process.group.store import World, fields
from tests.process.lib.script import BUILD

PLACES = 3
SECONDS = ("none", "list", "same", "own", "library", "member")
THREADS = {"none": 2, "list": 1, "same": 2, "own": 3, "library": 3, "member": 3}
# As CHILD_WHERE_MAP in child.h.
CHILDREN = ("apply", "begin", "next", "end", "read", "finish", "install",
            "abandon", "changed", "done", "log", "loop", "other thread",
            "group of its own")


class Run:
    def __init__(self, o, number):
        self.o, self.number = o, number
        self.rng = random.Random("%d %d" % (o.seed, number))
        self.second = o.second or self.rng.choice(SECONDS)
        self.groups = "a" if self.second in ("none", "list") else "ab"
        self.seats = 2 if self.second == "member" else 1  # of each, in a group
        self.victim = self.rng.randrange(PLACES)
        self.idle = self.rng.random() < 0.3  # when it is killed
        self.wrong, self.late, self.children, self.seen_ms = [], 0, 0, 0

    def run(self):
        self.world = World(self.o.host, PLACES)
        folder = self.world.folder
        os.mkfifo(folder + "/life")
        life = os.open(folder + "/life", os.O_RDWR)
        self.world.errors = open(folder + "/errors", "wb")
        try:
            self.live()
            self.leave()
        except AssertionError as e:
            self.wrong.append(str(e))
        finally:
            os.close(life)
            with open(folder + "/errors", encoding="utf8",
                      errors="replace") as f:
                self.wrong += f.read().splitlines()
            self.world.errors.close()
            self.world.close()
        return self

    def start(self, place):
        self.world.command = [self.o.host, self.world.folder, str(place),
                              self.o.loop, self.second,
                              str(self.rng.randrange(1 << 63))]
        self.world.start(place)

    # ---- what happens

    def live(self):
        for place in range(PLACES):
            self.start(place)
        everywhere = list(range(PLACES))
        others = [p for p in everywhere if p != self.victim]
        self.until_all_serve(everywhere)
        self.do(everywhere)()
        self.do_singly(everywhere)
        ends = self.do([] if self.idle else others)
        if not self.idle:
            self.do([self.victim])
        self.kill_soon()
        self.see_end(others)
        self.see_mutexes(others)
        ends()
        for _ in range(self.rng.randint(1, 2)):
            self.come_and_die(others)
        self.start(self.victim)
        self.until_all_serve(everywhere)
        self.do(everywhere)()
        self.world.until(
            lambda: "equal states: %s" % self.digests(everywhere),
            lambda: all(len(d) == 1 for d in self.digests(everywhere)),
            self.o.patience)

    def kill_soon(self):
        self.world.after(self.rng.uniform(0, 0.05), lambda: self.world.kill(
            self.victim))
        self.until_ended(self.victim)

    def come_and_die(self, others):
        """What the others have to say to a guest they say to one that has died,
        if they are stopped meanwhile."""
        stopped = others if self.rng.random() < 0.7 else []
        for p in stopped:
            self.world.stop(p)
        self.start(self.victim)
        self.kill_soon()
        for p in stopped:
            self.world.go_on(p)

    def leave(self):
        self.children = int(self.ask([0], "children")[0])
        everywhere = list(range(PLACES))
        for m, said in self.ask(everywhere, "leave").items():
            assert said == "well", "member %d leaves: %s" % (m, said)
        for place in everywhere:
            self.until_ended(place)
            status = self.world.member[place].process.returncode
            assert status == 0, "host %d has ended with %d" % (place, status)

    # ---- what must be so

    def ask(self, places, line):
        got = self.world.answers(line, self.o.patience,
                                 [self.world.member[p] for p in places])
        ended = [p for p in places if got[p] is None]
        assert not ended, "hosts have ended: %s" % ended
        return got

    def do(self, places):
        """Begin so many at each group of these hosts. @return what waits until
        all have ended."""
        return self.begin([(p, g) for p in places for g in self.groups],
                          self.o.each)

    def do_singly(self, places):
        """One after the other, while all others sleep: nothing that comes later
        makes up for a wake-up that is lost."""
        for _ in range(self.o.singly):
            self.begin([(self.rng.choice(places),
                         self.rng.choice(self.groups))], 1)()

    def begin(self, asked, count):
        said = {}
        for place, group in asked:
            self.world.member[place].ask(
                "do %s %d" % (group, count),
                lambda answer, x=(place, group): said.update({x: answer}))

        def ends():
            self.world.until(lambda: "all end; so far: %s" % said,
                             lambda: len(said) == len(asked), self.o.patience)
            assert None not in said.values(), "hosts have ended: %s" % said
            for answer in said.values():
                self.late += sum(fields(answer)[k] for k in ("unknown", "late"))
        return ends

    def until_all_serve(self, places):
        self.world.until(
            lambda: "all serve: %s" % self.statuses(places),
            lambda: all(s["phase"] == "serving" and
                        s["members"].bit_count() == PLACES * self.seats
                        for s in self.statuses(places)), self.o.patience)

    def statuses(self, places):
        return [fields(answer) for group in self.groups
                for answer in self.ask(places, "status " + group).values()]

    def digests(self, places):
        """Of each group; what has ended as unknown may still be applied."""
        found = [set(self.ask(places, "digest " + group).values())
                 for group in self.groups]
        return [set.union(*found)] if self.second == "member" else found

    def until_ended(self, place):
        self.world.until("the end of %d" % place,
                         lambda: self.world.member[place].ended,
                         self.o.patience)

    def see_mutexes(self, others):
        """All that it had locked, found once, by the first that looks."""
        found = [fields(self.ask([p], "mutexes %d" % self.victim)[p])
                 for p in others]
        dead = [f["dead"] for f in found]
        assert dead == [THREADS[self.second], 0], "mutexes: %s" % found
        found = self.ask(others, "mutexes %d" % others[0])[others[1]]
        assert fields(found)["locked"] == THREADS[self.second], found

    def see_end(self, others):
        begin = time.monotonic()
        while not all(s["members"].bit_count() == (PLACES - 1) * self.seats
                      for s in self.statuses(others)):
            assert time.monotonic() < begin + self.o.patience, "its end is seen"
            self.world.turn(0.001)
        self.seen_ms = (time.monotonic() - begin) * 1000

    def __str__(self):
        return "%s, second group: %s, %d too late, %s: seen in %.0f ms, %s" % (
            self.o.loop, self.second, self.late,
            "idle" if self.idle else "busy", self.seen_ms,
            "; ".join(self.wrong) or "well")


def main():
    p = argparse.ArgumentParser(
        description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--host", default=BUILD + "/tests/process/host/host")
    p.add_argument("--loop", default="epoll", choices=("poll", "epoll", "libuv"))
    p.add_argument("--second", choices=SECONDS, help="drawn, unless told")
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--first", type=int, default=0, help="number of the first")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--each", type=int, default=40,
                   help="proposals and the like, each time, of each host")
    p.add_argument("--singly", type=int, default=20,
                   help="that begin when the one before has ended")
    p.add_argument("--patience", type=float, default=60, help="s")
    o = p.parse_args()
    total, wrong = collections.Counter(), 0
    for number in range(o.first, o.first + o.runs):
        r = Run(o, number).run()
        print("run %d: %s" % (number, r), flush=True)
        wrong += bool(r.wrong)
        total.update(w for i, w in enumerate(CHILDREN) if r.children >> i & 1)
    print("wrong %d; children: %s" % (wrong, ", ".join(
        "%s %d" % (w, total[w]) for w in CHILDREN)))
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
