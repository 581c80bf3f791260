"""Disturbed joins: a new incarnation gets its snapshot although any replica
stops or dies meanwhile, once the remaining ones continue.

Usage: test_joins.py QUOIND QUOIN [NAME...]

QN_TEST_JOIN_MIB=N  size of the store (192)
"""
import os
import signal
import sys
import threading

from tests.process.lib.checks import agree, Background, check, main, wait_until
from tests.process.lib.quoind import Quoind
from tests.process.lib.info_view import info

PATH = sys.argv[1]
MIB = int(os.environ.get("QN_TEST_JOIN_MIB", "192"))
VALUE = b"v" * 65536


def fill(c, mib):
    """Values of 64 KiB, different for each key."""
    for i in range(0, mib * 16, 16):
        got = c.pipeline(*[("SET", "key%d" % k, VALUE)
                           for k in range(i, i + 16)])
        check("fill", set(got), {b"OK"})


def snapshots(q, asked, replica):
    """INFO's line of that replica: {name: number}."""
    line = info(q, asked).get("snapshots%d" % replica, "")
    return {k: int(v) for k, v in (f.split("=") for f in line.split(",") if f)}


def joined(q, asked, joiner):
    wait_until("it has joined", lambda: info(q, asked)["in_sync"] == "0,1,2" and
               isinstance(q.client(joiner).call("DBSIZE"), int))


class Join:
    """A follower was killed and its next incarnation has begun to read. The
    other follower is the donor, as the leader is asked last."""

    def __init__(self, q):
        self.q = q
        self.leader = int(info(q, 0)["leader"])
        self.joiner, self.donor = {0, 1, 2} - {self.leader}
        fill(q.client(self.leader), MIB)
        wait_until("it was caught in the middle", self.begin)
        self.pids = q.pids()

    def begin(self):
        """False if it was faster than this check."""
        given = self.of_donor()["given"]
        self.bound = 0
        os.kill(self.q.pids()[self.joiner], signal.SIGKILL)

        def begun():
            d = self.of_donor()
            self.bound = d["cut_bytes_max"]
            return self.bound != 0 or d["given"] > given
        wait_until("a cut", begun)
        if self.of_donor()["given"] == given:
            return True
        self.ends()
        return False

    def of_donor(self):
        return {"given": 0, "cut_bytes_max": 0,
                **snapshots(self.q, self.leader, self.donor)}

    def signal(self, replica, number):
        os.kill(self.pids[replica], number)

    def ends(self):
        joined(self.q, self.leader, self.joiner)


def test_a_stopped_joiner():
    """Its donor keeps no data for it, and gives it another snapshot later.
    Until then it may keep as many bytes of old versions as the log holds."""
    with Quoind(PATH, args=["--repl-backlog-size", "100mb"]) as q:
        j = Join(q)
        check("bound", j.bound, 100 << 20)
        j.signal(j.joiner, signal.SIGSTOP)
        wait_until("the donor has no cut",
                   lambda: j.of_donor()["cut_bytes_max"] == 0)
        c = q.client(j.leader)
        check("write", c.call("SET", "goes", "on"), b"OK")
        j.signal(j.joiner, signal.SIGCONT)
        j.ends()
        check("read", q.client(j.joiner).call("GET", "goes"), b"on")
        agree(q)


def test_a_stopped_donor():
    """The leader gives instead."""
    with Quoind(PATH) as q:
        j = Join(q)
        j.signal(j.donor, signal.SIGSTOP)
        joiner = q.client(j.joiner)
        wait_until("another one has given",
                   lambda: joiner.call("DBSIZE") == MIB * 16)
        check("by", snapshots(q, j.leader, j.leader)["given"], 1)
        check("write", q.client(j.leader).call("SET", "goes", "on"), b"OK")
        j.signal(j.donor, signal.SIGCONT)
        j.ends()
        wait_until("it keeps nothing",
                   lambda: j.of_donor()["cut_bytes_max"] == 0)
        agree(q)


def test_a_donor_that_dies():
    with Quoind(PATH) as q:
        j = Join(q)
        j.signal(j.donor, signal.SIGKILL)
        wait_until("it is noticed",
                   lambda: info(q, j.leader)["in_sync"] != "0,1,2")
        j.ends()
        check("size", [q.client(i).call("DBSIZE") for i in range(3)],
              [MIB * 16] * 3)
        agree(q)


def test_a_joiner_that_dies():
    """Its donor ends the cut, and its next incarnation starts again."""
    with Quoind(PATH) as q:
        j = Join(q)
        j.signal(j.joiner, signal.SIGKILL)
        wait_until("another life", lambda: q.pids() != j.pids and
                   len(q.pids()) == 3)
        j.ends()
        wait_until("it keeps nothing",
                   lambda: j.of_donor()["cut_bytes_max"] == 0)
        agree(q)


def test_all_is_flushed_again_and_again():
    """FLUSHALL at the leader, during writes."""
    with Quoind(PATH) as q:
        done = threading.Event()
        leader = int(info(q, 0)["leader"])

        def flush():
            c = q.client(leader)
            while not done.wait(0.3):
                check("flush", c.call("FLUSHALL"), b"OK")

        def write():
            c = q.client(leader)
            while not done.is_set():
                fill(c, 8)
        with Background(flush), Background(write):
            try:
                victim = (leader + 1) % 3
                for _ in range(3):
                    before = q.pids()
                    os.kill(before[victim], signal.SIGKILL)
                    wait_until("another life", lambda: q.pids() != before and
                               len(q.pids()) == 3)
                    joined(q, leader, victim)
            finally:
                done.set()
        agree(q)


main(sys.argv[3:], globals())
