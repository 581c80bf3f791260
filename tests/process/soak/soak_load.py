"""Full load of large values without a fault: does every replica stay in sync,
is memory bounded, is every write answered?

    soak_load.py                         60 s, as placed by default
    soak_load.py --pin none|one-core
    soak_load.py --stops                 one follower stopped 0.2 s in every 2 s
    soak_load.py --big                   1 % of the values are of 16 MiB
    soak_load.py --huge                  one SET of 64 MiB in between: +OK
    soak_load.py --at leader|followers|all
    soak_load.py --half-sent             50 clients announce 16 MiB, send 15
    soak_load.py --fair                  a generator per replica: each
                                           follower's p50 at most twice the
                                           leader's
    soak_load.py --matrix --seconds 10   all of these, and both acceptors

A quoind with three replicas, `quoin load` with SET of 64 KiB, 1000 keys, 50
connections, pipeline 16. Each replica is sampled ten times a second: every
replica in sync and awaited, RssAnon at most 1.25 times its used memory and 128
MiB, RssShmem at most 320 MiB and its arena for uploads. No error reply, no
snapshot. One row per form, with its violations; status 1 if there are any.
"""
import contextlib
import os
import signal
import sys
import threading
import time

from tests.process.lib import heavy
from tests.process.lib import verdicts
from tests.process.lib.heavy import MIB
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.info_view import look, pids_of

BIG = 16 * MIB
HUGE = 64 * MIB
PINS = ("default", "none", "one-core")
AT = ("leader", "followers", "all")
HEAD = "%-34s %7s %8s %9s %6s %5s %9s %6s %8s %8s  %s" % (
    "form", "ops/s", "p50 ms", "p99 ms", "errors", "snap", "not kept",
    "lines", "anon MiB", "shm MiB", "wrong")


class Stops(threading.Thread):
    """A follower is stopped for 0.2 s in every 2 s."""

    def __init__(self, q):
        super().__init__(daemon=True)
        self.pid = pids_of(q)[look(q, range(q.replicas)).leader == 0 and 1 or 0]
        self.stop = threading.Event()

    def run(self):
        while not self.stop.wait(1.8):
            os.kill(self.pid, signal.SIGSTOP)
            try:
                self.stop.wait(0.2)
            finally:
                os.kill(self.pid, signal.SIGCONT)


class Large(threading.Thread):
    """Values of 16 MiB, 1 % of the bytes that the load writes."""

    def __init__(self, q, load):
        super().__init__(daemon=True)
        self.q, self.load = q, load
        self.stop = threading.Event()
        self.done = self.errors = 0
        self.first = ""

    def run(self):
        c = Client(self.q.port + 1)
        value = b"y" * BIG
        while not self.stop.wait(0.01):
            ops = sum(s["ops"] for s in self.load.records())
            while self.done * 100 < ops and not self.stop.is_set():
                self.ask(c, "big:%d" % (self.done % 4), value)
        c.close()

    def ask(self, c, key, value):
        got = c.call("SET", key, value)
        self.done += 1
        if isinstance(got, Error):
            self.errors += 1
            self.first = self.first or str(got)


def huge(q):
    """@return what is wrong, or ""."""
    c = Client(q.port + 1)
    got = c.call("SET", "huge", b"z" * HUGE)
    c.close()
    return "" if got == b"OK" else "64 MiB: %s" % got


def half_sent(q, count):
    """Clients at replica 0 that announce a large value and stop."""
    clients = [Client(q.port + 1) for _ in range(count)]
    for i, c in enumerate(clients):
        c.send(b"*3\r\n$3\r\nSET\r\n$6\r\nhalf%02d\r\n$%d\r\n" % (i, BIG))
        c.send(b"h" * (BIG * 15 // 16))
    return clients


def server(o):
    args = ["--acceptor", o.acceptor, "--commit-timeout", "3", *o.args]
    if o.pin == "none":
        args += ["--pin", "none"]
    q = Quoind(o.quoind, args=args)
    prefix = []
    if o.pin == "one-core":
        prefix = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        q.cmd = [*prefix, *q.cmd]
    return q, prefix


def asked(q, at):
    leader = look(q, range(q.replicas)).leader
    return [i for i in range(q.replicas)
            if at == "all" or (i == leader) == (at == "leader")]


def name_of(o):
    words = [o.acceptor, "pin " + o.pin, "at " + o.at]
    words += [w for w in ("stops", "big", "huge", "half_sent", "fair")
              if getattr(o, w)]
    return ", ".join(words).replace("_", "-")


class Form:
    """One run, with the options `o`."""

    def __init__(self, o):
        self.o = o
        self.wrong = []

    def beside(self, load):
        """@return the additional activity during the load."""
        helpers = []
        if self.o.stops:
            helpers.append(Stops(self.q))
        if self.o.big:
            helpers.append(Large(self.q, load))
        for h in helpers:
            h.start()
        return helpers

    def fair(self):
        """@return violations: one load for each replica in turn."""
        one = type(self.o)(**vars(self.o))
        one.connections = max(self.o.connections // self.q.replicas, 1)
        leader = look(self.q, range(self.q.replicas)).leader
        with contextlib.ExitStack() as stack:
            loads = [stack.enter_context(heavy.Load(
                self.q, one, [i], prefix=self.prefix))
                for i in range(self.q.replicas)]
            time.sleep(self.o.seconds)
            p50 = [heavy.percentile(x.end(), "p50") for x in loads]
        print("p50 in ms, by replica: %s, %d leads" % (
            ", ".join("%.1f" % x for x in p50), leader), file=sys.stderr)
        return verdicts.fair(leader, p50)

    def load(self, seconds):
        with heavy.Load(self.q, self.o, asked(self.q, self.o.at),
                        prefix=self.prefix) as load:
            helpers = self.beside(load)
            time.sleep(seconds / 2)
            if self.o.huge:
                self.note(huge(self.q))
            time.sleep(seconds / 2)
            for h in helpers:
                h.stop.set()
            for h in helpers:
                h.join()
            summary = load.end()
        for h in helpers:
            if getattr(h, "errors", 0):
                self.note("16 MiB: %d errors, %s" % (h.errors, h.first))
        return summary

    def note(self, text):
        if text:
            self.wrong.append(text)

    def run(self):
        self.q, self.prefix = server(self.o)
        with self.q, contextlib.ExitStack() as stack:
            heavy.wait_for("all current", lambda: heavy.current(self.q))
            first = self.load(self.o.seconds) if self.o.half_sent else None
            for c in half_sent(self.q, 50) if self.o.half_sent else []:
                stack.callback(c.close)
            if self.o.fair:
                self.wrong += self.fair() if not self.o.quick else []
            lines = len(heavy.log_lines(self.q))
            looks = heavy.Looks(self.q)
            looks.start()
            try:
                summary = self.load(self.o.seconds)
            finally:
                looks.end()
            row = self.verdict(first, summary, looks)
            row["lines"] = len(heavy.log_lines(self.q)) - lines
        if self.q.status != 0:
            self.note("exit status %d" % self.q.status)
        row["wrong"] = self.wrong
        return row

    def verdict(self, first, summary, looks):
        needed = heavy.snapshots(self.q, self.o)
        timed = first is not None and not self.o.quick
        # Half-sent: 750 MiB belong to the clients.
        self.wrong += verdicts.load(
            summary, needed, looks, bars=not self.o.half_sent,
            p50_before=heavy.percentile(first, "p50") if timed else None)
        return {"form": name_of(self.o), "ops": summary["ops_per_s"],
                "p50": heavy.percentile(summary, "p50"),
                "p99": heavy.percentile(summary, "p99"),
                "errors": verdicts.failed(summary), "snapshots": needed,
                "not kept": looks.absent, "looks": looks.count,
                "unanswered": looks.unanswered, **looks.most}


def show(row):
    print("%-34s %7.0f %8.1f %9.1f %6d %5d %4d/%-4d %6d %8d %8d  %s" % (
        row["form"], row["ops"], row["p50"], row["p99"], row["errors"],
        row["snapshots"], row["not kept"], row["looks"], row["lines"],
        row["RssAnon"] // MIB, row["RssShmem"] // MIB,
        "; ".join(row["wrong"]) or "nothing"), flush=True)


def matrix(o):
    """Options of each form."""
    plain = dict(pin="default", at="all", stops=False, big=False, huge=False,
                 half_sent=False, fair=False)
    forms = [{"pin": pin} for pin in PINS] + [{"at": at} for at in AT[:2]] + \
        [{w: True} for w in ("stops", "big", "huge", "half_sent", "fair")]
    for acceptor in ("memory", "process"):
        for form in forms:
            one = type(o)(**vars(o))
            vars(one).update(plain, acceptor=acceptor, **form)
            yield one


def parse():
    p = heavy.parser(__doc__, 60.0)
    p.add_argument("--pin", choices=PINS, default="default")
    p.add_argument("--at", choices=AT, default="all")
    for word in ("stops", "big", "huge", "half-sent", "fair", "matrix"):
        p.add_argument("--" + word, action="store_true")
    return heavy.options(p)


def run(o):
    print(HEAD, flush=True)
    rows = []
    for one in matrix(o) if o.matrix else [o]:
        rows.append(Form(one).run())
        show(rows[-1])
    return rows


def main():
    o = parse()
    rows = heavy.script.end(lambda: run(o), o)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
