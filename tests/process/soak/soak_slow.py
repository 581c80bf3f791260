"""A follower gets a small share of a core: how much throughput do the others
lose?

    soak_slow.py                         64 KiB, SIGSTOP but for 10 ms a second
    soak_slow.py --how quota             a control group (v1) of 10 ms in 1 s
    soak_slow.py --value-size 16         small values
    soak_slow.py --matrix                all four, both acceptors

A quoind with three replicas, `quoin load` with SET at the two that are not
starved. Their rate in the 5 s before, and in each later part: its first 5 s,
and the rest. Then the starvation ends: how long until the follower is awaited
again? Status 1 if the rest is below 0.8 of the rate before, a write failed, or
the follower is not awaited again.
"""
import contextlib
import os
import sys
import time

from tests.process.lib import heavy
from tests.process.lib.quoind import Quoind
from tests.process.lib.info_view import fields, info

HEAD = "%-24s %8s %8s %8s %6s %6s %8s  %s" % (
    "form", "before", "first 5", "later", "ratio", "given", "back s", "wrong")
BEFORE_S, FIRST_S = 5.0, 5.0
GROUP = "/sys/fs/cgroup/cpu"


@contextlib.contextmanager
def quota(pid):
    """A process has 10 ms of a core in each second."""
    path = "%s/quoin-slow-%d" % (GROUP, os.getpid())

    def put(name, value):
        with open(name, "w") as f:
            f.write(str(value))

    os.mkdir(path)
    try:
        put(path + "/cpu.cfs_period_us", 1000000)
        put(path + "/cpu.cfs_quota_us", 10000)
        put(path + "/cgroup.procs", pid)
        yield
    finally:
        put(GROUP + "/cgroup.procs", pid)
        os.rmdir(path)


class Form:
    def __init__(self, o):
        self.o = o
        self.wrong = []

    def squeeze(self, pid):
        return quota(pid) if self.o.how == "quota" else heavy.Starver(pid)

    def run(self):
        o = self.o
        with Quoind(o.quoind, args=["--acceptor", o.acceptor,
                                    "--commit-timeout", "0", *o.args]) as q:
            first = info(q, 0)
            leader, acceptor = int(first["leader"]), int(first["acceptor"])
            slow = [n for n in range(3) if n not in (leader, acceptor)][-1]
            rates, summary = self.load(q, leader, slow)
            row = {"form": "%s, %s, %s" % (o.acceptor, o.value_size, o.how),
                   **rates}
            row["given"] = int(info(q, leader)["replicas_given_up"])
            if o.verbose:
                print(q.log_so_far(), file=sys.stderr)
        if summary["errors"] + summary["unanswered"]:
            self.wrong.append("%d errors, %d unanswered: %s" % (
                summary["errors"], summary["unanswered"],
                summary["first_error"]))
        row["wrong"] = self.wrong
        return row

    def load(self, q, leader, slow):
        o = self.o
        others = [n for n in range(3) if n != slow]
        with heavy.Load(q, o, others, step=0.5) as load:
            time.sleep(1 + BEFORE_S)
            begin = time.monotonic()
            with self.squeeze(q.pids()[slow]):
                self.watch(q, leader, o.seconds)
                end = time.monotonic()
            back = self.back(q, leader, slow)
            before = load.rate(begin - BEFORE_S, begin)
            first = load.rate(begin, begin + FIRST_S)
            later = load.rate(begin + FIRST_S, end)
            if o.verbose:
                print([(round(load.began + s["at"] - begin, 1), s["ops"])
                       for s in load.records()], file=sys.stderr)
            summary = load.end()
        ratio = later / before if before else 0.0
        if ratio < 0.8 and not o.quick:
            self.wrong.append("less than 0.8")
        return {"before": before, "first": first, "later": later,
                "ratio": ratio, "back": back}, summary

    def watch(self, q, leader, seconds):
        """Waits; the leader's view of the others, each second."""
        for _ in range(int(seconds)):
            time.sleep(1)
            if self.o.verbose:
                i = info(q, leader)
                print(i["gate_shut_usec"], i["flow_control_delay_usec"],
                      [i["flow%d" % n] for n in range(3) if n != leader],
                      file=sys.stderr)

    def back(self, q, leader, slow):
        try:
            return heavy.wait_for("it is awaited again", lambda: fields(
                info(q, leader), slow, "flow").get("awaited") == "1")
        except RuntimeError as e:
            self.wrong.append(str(e))
            return float("inf")


def show(row):
    print("%-24s %8.0f %8.0f %8.0f %6.2f %6d %8.1f  %s" % (
        row["form"], row["before"], row["first"], row["later"], row["ratio"],
        row["given"], row["back"], "; ".join(row["wrong"]) or "nothing"),
        flush=True)


def matrix(o):
    for acceptor in ("memory", "process"):
        for size in ("64ki", "16"):
            for how in ("stop", "quota"):
                one = type(o)(**vars(o))
                vars(one).update(acceptor=acceptor, value_size=size, how=how)
                yield one


def parse():
    p = heavy.parser(__doc__, 20.0)
    p.add_argument("--how", choices=("stop", "quota"), default="stop")
    p.add_argument("--matrix", action="store_true")
    p.add_argument("--verbose", action="store_true",
                   help="the rate of each half second, and the server's log")
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
