"""Members are added and removed under load, and one is killed or stopped at a
random moment of each change.

    changes.py --runs 200 --seed 1

Each run begins with three processes of examples/store.c. In random order two
are added (they are started, and become voters) and one is removed: in two of
five runs the one that leads, else another one; it asks for that itself, or
another one does. While a change is under way one process is killed or stopped:
the one that leads, that joins, that is removed, that gives or gets a snapshot
then, or another one; it comes back, unless it is the one that is removed. A member is killed only if another one has
all that was decided.

Within --patience from when all go on, each change is done, asked again if its
end is not known or it was refused, and the removed process has ended. If that
one was killed before, and another process has come back in its seat, the seat
where a vote is missing is removed instead. Then as in trial.py; and the voters
are those that live.
"""
import sys
import time

from tests.process.group import trial

PAUSE = 0.02  # s, before a change is asked for again
ENDS = ("donor", "joiner")  # of a snapshot
TAKEN = "refused: of an earlier incarnation"


class Harm:
    """What is done to one process while a change is under way."""

    def __init__(self, rng, roles, late):
        self.kind = rng.choice(("kill", "stop"))
        self.role = rng.choice(roles)
        self.leader = False  # known when it is done
        self.choice = rng.random()
        self.after = late * 0.01 ** rng.random()  # s
        if self.role in ENDS:
            self.after = 0  # as soon as there is one
        self.length = 0.002 * 300 ** rng.random()
        self.did = "not " + self.kind

    def __str__(self):
        return "%s %s after %.1f ms for %.0f" % (
            self.did, self.role, self.after * 1000, self.length * 1000)


class Change:
    """@param role  None: a member is added; else the one that is removed."""

    def __init__(self, rng, role):
        self.role = role
        self.fault = Harm(rng, ("leader", "other", "this") +
                          (ENDS if role is None else ()),
                          0.05 if role is None else 0.015)
        self.harmed = False
        self.itself = rng.random() < 0.3  # asks that it is removed
        self.choice = rng.random()
        self.index = self.seat = self.incarnation = None
        self.asking, self.said = False, []
        self.took = 0.0

    def __str__(self):
        text = "add" if self.role is None else "remove %s (%s)" % (
            self.role, ", ".join(self.said))
        return "%s in %.0f ms, %s" % (text, self.took * 1000, self.fault)


class Run(trial.Run):
    def plan(self, rng):
        role = "leader" if self.number % 5 < 2 else "other"
        self.changes = [Change(rng, r) for r in (None, None, role)]
        rng.shuffle(self.changes)
        if self.o.members == 1 and self.changes[0].role is not None:
            self.changes.append(self.changes.pop(0))  # one is not removed
        self.faults = [c.fault for c in self.changes]
        self.rest = [rng.uniform(0.02, 0.2) for _ in self.changes]

    def disturb(self):
        for change, rest in zip(self.changes, self.rest):
            end = time.monotonic() + rest
            while time.monotonic() < end:
                self.world.turn(end - time.monotonic())
            self.make(change)

    def make(self, c):
        began = time.monotonic()
        (self.add if c.role is None else self.choose)(c)
        since = None
        while not self.done(c):
            now = time.monotonic()
            if not c.harmed and now >= began + c.fault.after:
                self.hurt(c)
            if self.returning:
                since = None
            since = since or now
            assert now - since < self.o.patience, "never done: %s; %s" % (
                c, self.statuses())
            aims = not c.harmed and c.fault.role in ENDS
            self.world.turn(0 if aims else 0.003)
        c.took = time.monotonic() - began

    # ---- the change

    def add(self, c):
        c.index = len(self.world.member)
        self.world.start(c.index)
        self.load.begin(c.index, self.clients)

    def choose(self, c):
        """The one that is to be removed."""
        got = {}
        while not got:
            got = self.statuses()
        leader = self.leader_of(got)
        voters = [i for i, s in got.items() if s["voters"] >> s["seat"] & 1]
        able = sorted(i for i in voters if (got[i]["seat"] == leader) ==
                      (c.role == "leader")) or voters
        c.index = able[int(c.choice * len(able))]
        c.seat, c.incarnation = (got[c.index][k]
                                 for k in ("seat", "incarnation"))
        self.gone.add(c.index)

    def done(self, c):
        got = self.statuses()
        if c.role is None:
            return c.index in got and all(
                s["voters"] >> got[c.index]["seat"] & 1 for s in got.values())
        if c.said[-1:] != ["ok"]:
            self.ask(c, got)
            return False
        if not self.world.member[c.index].ended:
            return False
        return all(not s["voters"] >> c.seat & 1 for s in got.values())

    def aim_again(self, c, got):
        """Another process has its seat, and has left one without a vote."""
        for s in got.values():
            mute = s["voters"] & ~s["members"]
            if mute:
                c.seat, c.incarnation = mute.bit_length() - 1, 0

    def ask(self, c, got):
        able = sorted(set(got) - {c.index})
        if c.itself and not c.said and c.index in got:
            able = [c.index]
        if c.asking or not able:
            return
        c.asking = True
        if c.said[-1:] == [TAKEN]:
            self.aim_again(c, got)

        def ended(answer):
            c.said.append("died" if answer is None else answer)
            self.world.after(PAUSE, lambda: setattr(c, "asking", False))
        self.world.member[able[int(c.choice * len(able))]].ask(
            "remove %d %d" % (c.seat, c.incarnation), ended)

    # ---- its disturbance

    def leader_of(self, got):
        return max(got.values(), key=lambda s: s["applied"])["leader"]

    def hurt(self, c):
        got, f = self.statuses(), c.fault
        leader = self.leader_of(got) if got else None
        able = {"this": [c.index],
                "leader": [i for i, s in got.items() if s["seat"] == leader],
                "other": [i for i, s in got.items()
                          if s["seat"] != leader and i != c.index],
                "donor": self.with_end("joiner"),
                "joiner": self.with_end("donor")}[f.role]
        able = sorted(i for i in able if not self.world.member[i].ended)
        c.harmed = bool(able) or f.role not in ENDS
        if not able:
            return
        i = able[int(f.choice * len(able))]
        if f.kind == "kill" and not self.lives_on(c, i, got):
            return
        f.leader = i in got and got[i]["seat"] == leader
        self.strike(f, i)

    def with_end(self, other):
        """Those that give a snapshot to a joiner, or get one from a donor."""
        return [i for i, s in self.said.items() if s[other] < s["capacity"]]

    def lives_on(self, c, i, got):
        """Another one has all, and if this one does not come back, a majority
        of the voters lives."""
        seat = 1 << got[i]["seat"] if i in got else 0
        stays = i == c.index and c.role is not None
        return all(s["in_sync"] & ~seat and
                   (not stays or s["voters"].bit_count() > 2)
                   for s in got.values())

    def judge(self):
        self.world.until(
            lambda: "those that live are the voters: %s" % self.statuses(),
            self.all_vote, self.o.patience)
        super().judge()

    def all_vote(self):
        got = self.statuses().values()
        seats = sum(1 << s["seat"] for s in got)
        return all(s["voters"] == seats for s in got)

    def counts(self):
        hit = [f.role for f in self.faults if f.did == f.kind]
        return {**super().counts(), "leaders removed": sum(
            c.role == "leader" and c.said[-1:] == ["ok"]
            for c in self.changes),
            "donors hit": hit.count("donor"),
            "joiners hit": hit.count("joiner")}

    def story(self):
        return self.changes


def main():
    return trial.do(Run, trial.parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
