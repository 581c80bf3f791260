"""Replicas that rejoin, or are starved, under full load of large values: the
join ends, and the others continue to write.

    soak_join.py                          all of these, one after the other
    soak_join.py --form joiner-stopped    the joiner is stopped for 10 s during
                                            its transfer
    soak_join.py --form donor-stopped     its donor does
    soak_join.py --form donor-killed      its donor dies
    soak_join.py --form flushall          FLUSHALL once a second meanwhile
    soak_join.py --form small             SET of 16 bytes, one at a time, while
                                            the joiner runs 2 ms in 0.3 s: the
                                            log's slots run out before its bytes
    soak_join.py --form starved           a follower gets 1 % of a core (it is
                                            stopped for 0.99 s of each second)
    soak_join.py --form rejoin            a replica with 256 MB is killed: its
                                            join without load, and with it

Three replicas and `quoin load`, SET of 64 KiB. The first five: no write at the
others waits longer than 3 s, and the join ends once all replicas run. starved:
at least 0.8 of the rate before, 5 s after it began. rejoin: at most 3 times as
long as without load, and the others' rate stays above a fifth of that before
in every second. One line per run; status 1 if a run failed.
"""
import argparse
import os
import signal
import sys
import threading
import time

from tests.process.lib import heavy
from tests.process.lib import verdicts
from tests.process.lib.quoind import Client, Quoind
from tests.process.lib.info_view import look, pids_of


class Flusher(threading.Thread):
    def __init__(self, q, replica, every):
        super().__init__(daemon=True)
        self.q, self.replica, self.every = q, replica, every
        self.stop = threading.Event()

    def run(self):
        c = Client(self.q.port + 1 + self.replica)
        while not self.stop.wait(self.every):
            c.call("FLUSHALL")
        c.close()


class Run:
    def __init__(self, o, form):
        self.o, self.form = o, form
        self.pause = 0.3 if o.quick else 10.0
        self.wrong = []
        self.told = ""

    def run(self):
        self.q = Quoind(self.o.quoind, args=[
            "--acceptor", self.o.acceptor, "--commit-timeout", "3",
            *self.o.args])
        with self.q:
            try:
                heavy.wait_for("all current", lambda: heavy.current(self.q))
                heavy.fill(self.q, self.o, self.o.megabytes)
                getattr(self, self.form.replace("-", "_"))()
            except (RuntimeError, OSError) as e:
                self.wrong.append(str(e))
            self.q.drains = not self.wrong
        return self

    # ---- a victim, and its next incarnation ----

    def choose(self):
        """A follower; requests go to the others."""
        view = look(self.q, range(3))
        self.victim = max({0, 1, 2} - {view.leader})
        self.others = sorted({0, 1, 2} - {self.victim})
        self.pid = pids_of(self.q)[self.victim]

    def reborn(self):
        """Kills it; @return the pid of its next incarnation."""
        os.kill(self.pid, signal.SIGKILL)
        heavy.wait_for("it is started again", lambda: pids_of(self.q).get(
            self.victim, self.pid) != self.pid)
        return pids_of(self.q)[self.victim]

    def complete(self):
        """Waits until all are current and in sync. @return the seconds until
        then."""
        return heavy.wait_for("the join ends", lambda: heavy.current(self.q),
                              self.q.proc)

    def donor(self, known):
        """The donor of the victim's next incarnation, from the events recorded
        since `known`. Without one yet, or if none is needed: a follower."""
        deadline = time.monotonic() + 2.0
        while time.monotonic() < deadline:
            for e in heavy.events(self.q, self.o)[known:]:
                if e["event"] == "snapshot-asked" and "of" in e:
                    return int(e["of"])
        return self.others[-1]

    def joined(self, load):
        """The verdict of the first five forms."""
        seconds = self.complete()
        summary = load.end()
        longest = heavy.unavailable_ms(summary)
        self.told = "joined %.1f s after the resume, no write for %.0f ms" % (
            seconds, longest)
        if not self.o.quick:
            self.wrong += verdicts.joined(longest)

    # ---- the forms ----

    def joiner_stopped(self):
        self.choose()
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            joiner = self.reborn()
            time.sleep(0.05)
            heavy.send(joiner, signal.SIGSTOP)
            time.sleep(self.pause)
            heavy.send(joiner, signal.SIGCONT)
            self.joined(load)

    def donor_stopped(self):
        self.choose()
        known = len(heavy.events(self.q, self.o))
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            self.reborn()
            pid = pids_of(self.q)[self.donor(known)]
            heavy.send(pid, signal.SIGSTOP)
            time.sleep(self.pause)
            heavy.send(pid, signal.SIGCONT)
            self.joined(load)

    def donor_killed(self):
        self.choose()
        known = len(heavy.events(self.q, self.o))
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            self.reborn()
            heavy.send(pids_of(self.q)[self.donor(known)], signal.SIGKILL)
            self.joined(load)

    def flushall(self):
        self.choose()
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            flusher = Flusher(self.q, self.others[0],
                              0.1 if self.o.quick else 1.0)
            flusher.start()
            try:
                self.reborn()
                self.joined(load)
            finally:
                flusher.stop.set()
                flusher.join()

    def small(self):
        self.choose()
        o = argparse.Namespace(**{**vars(self.o), "value_size": "16",
                                  "connections": 16, "pipeline": 1,
                                  "keys": 200000})
        with heavy.Load(self.q, o, self.others, step=0.1) as load:
            with heavy.Starver(self.reborn(), every=0.3, runs=0.002):
                time.sleep(3 * self.pause)
            self.joined(load)

    def starved(self):
        self.choose()
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            seconds = 0.5 if self.o.quick else 5.0
            before = self.rate_of(load, seconds)
            with heavy.Starver(self.pid):
                time.sleep(seconds)
                during = self.rate_of(load, seconds)
            self.complete()
        self.told = "%.0f operations a second before, %.0f with it" % (
            before, during)
        if not self.o.quick:
            self.wrong += verdicts.starved(before, during)

    @staticmethod
    def rate_of(load, seconds):
        begin = time.monotonic()
        time.sleep(seconds)
        return load.rate(begin, time.monotonic())

    def rejoin(self):
        self.choose()
        alone = self.timed_join()
        self.choose()
        with heavy.Load(self.q, self.o, self.others, step=0.1) as load:
            seconds = 0.5 if self.o.quick else 5.0
            before = self.rate_of(load, seconds)
            began = time.monotonic()
            loaded = self.timed_join()
            ends = [began + n for n in range(1, 2 + int(loaded))]
            time.sleep(max(0.0, ends[-1] + 0.2 - time.monotonic()))
            least = min(load.rate(at - 1.0, at) for at in ends)
        self.told = "%.2f s alone, %.2f s under load; %.0f operations a " \
            "second before, %.0f in the worst" % (alone, loaded, before, least)
        if not self.o.quick:
            self.wrong += verdicts.rejoined(alone, loaded, before, least)

    def timed_join(self):
        began = time.monotonic()
        self.reborn()
        self.complete()
        return time.monotonic() - began


FORMS = ("joiner-stopped", "donor-stopped", "donor-killed", "flushall",
         "small", "starved", "rejoin")


def parse():
    p = heavy.parser(__doc__, 0.0)
    p.add_argument("--form", choices=FORMS, action="append",
                   help="a form; may be repeated (all)")
    p.add_argument("--runs", type=int, default=1)
    p.add_argument("--megabytes", type=int, default=256,
                   help="data of the replicas")
    o = heavy.options(p)
    if o.quick:
        o.megabytes = 4
    return o


def run(o):
    found = []
    for form in o.form or FORMS:
        for number in range(o.runs):
            one = Run(o, form).run()
            found.append({"form": form, "told": one.told, "wrong": one.wrong})
            print("%-14s run %2d: %s: %s" % (
                form, number, one.told, "; ".join(one.wrong) or "ok"),
                flush=True)
    return found


def main():
    o = parse()
    found = heavy.script.end(lambda: run(o), o)
    return int(any(row["wrong"] for row in found))


if __name__ == "__main__":
    sys.exit(main())
