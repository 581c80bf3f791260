"""A server whose replicas read no memory of each other for agreement
(`--shared-state no`): positions and reads go by message.

Usage: test_shared_state.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import subprocess
import sys

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.info_view import fields, info
from tests.process.lib.quoind import Quoind
from tests.process.lib.verify import VerifiedLoad

PATH, QUOIN = sys.argv[1:3]
BY_MESSAGE = ["--acceptor", "process", "--shared-state", "no"]


def server(*more):
    return Quoind(PATH, args=[*BY_MESSAGE, *more])


def test_the_memory_acceptor_is_refused():
    done = subprocess.run([PATH, "--shared-state", "no"], capture_output=True, text=True,
                          timeout=20, check=False)
    check("status", done.returncode, 2)
    check("lines", len(done.stderr.splitlines()), 1)
    assert "--acceptor process" in done.stderr, done.stderr
    with Quoind(PATH) as q:
        check("default", info(q, 0)["shared_state"], "yes")


def test_reads_see_what_was_acknowledged_anywhere():
    with server() as q:
        check("shared_state", info(q, 1)["shared_state"], "no")
        check("acceptor_kind", info(q, 1)["acceptor_kind"], "process")
        clients = [q.client(i) for i in range(3)]
        for n in range(600):
            check("set", clients[n % 3].call("SET", "key", n), b"OK")
            check("get", clients[(n + 1 + n // 3) % 3].call("GET", "key"), b"%d" % n)
        check("WAIT", clients[1].call("WAIT", "2", "0"), 2)
        for c in clients:
            c.close()


def test_a_read_sees_earlier_and_no_later_writes_of_its_pipeline():
    """A read behind a write of the same input: it cannot be evaluated inside
    apply, since no slot is known that it must see."""
    with server() as q:
        c = q.client(2)
        for n in range(50):
            got = c.pipeline(["SET", "a", n], ["GET", "a"], ["INCR", "a"], ["GET", "a"],
                             ["GET", "a"], ["SET", "a", "x"])
            check("replies", got, [b"OK", b"%d" % n, n + 1, b"%d" % (n + 1),
                                   b"%d" % (n + 1), b"OK"])
        c.close()


def roles(q, asked):
    """Leader and acceptor, once that replica knows some. On a busy machine they
    change without any fault of the test's."""
    found = []

    def known():
        lines = info(q, asked)
        found[:] = [lines["leader"], lines["acceptor"]]
        return "none" not in found
    wait_until("roles", known)
    return [int(x) for x in found]


def other(pair):
    """The replica that has neither role."""
    return next(i for i in range(3) if i not in pair)


def test_load_is_linearizable_through_a_stop_and_deaths():
    """One follower is stopped, then the acceptor, then the leader; each is
    killed once, and restarts with its record, by a snapshot."""
    with server() as q, VerifiedLoad(q, QUOIN, "--mix", "get:4,set:2,incr:2",
                                     "--rate", "1k", "--connections", "9",
                                     "--spread", "request") as verified:
        verified.answered(1)
        pair = roles(q, 2)
        for replica in [other(pair), *reversed(pair)]:
            pid = q.pids()[replica]
            os.kill(pid, signal.SIGSTOP)
            verified.second()
            os.kill(pid, signal.SIGCONT)
            verified.answered(1)
        for which in range(2):  # the leader, then the acceptor
            asked = other(roles(q, 0))
            victim = roles(q, asked)[which]
            pid = q.pids()[victim]
            os.kill(pid, signal.SIGKILL)
            wait_until("replica %d is back" % victim, lambda: fields(
                info(q, asked), victim).get("state") == "online" and
                q.pids()[victim] != pid)
            verified.answered(1)
        summary, text, status = verified.end()
        assert status == 0, text
        check("verdict", summary["verify"]["verdict"], "linearizable")
        agree(q)
        return "%d operations" % summary["verify"]["operations"]


def test_a_stalled_acceptor_is_replaced_though_nobody_writes():
    """Readers wait for it: the leader asks in its own name, and suspects it."""
    with server() as q:
        pair = roles(q, 2)
        c = q.client(other(pair))
        check("set", c.call("SET", "a", "1"), b"OK")
        pid = q.pids()[pair[1]]
        os.kill(pid, signal.SIGSTOP)
        check("get", c.call("GET", "a"), b"1")
        assert roles(q, other(pair))[1] != pair[1], pair
        os.kill(pid, signal.SIGCONT)
        check("get", c.call("GET", "a"), b"1")
        c.close()


def test_leader_and_acceptor_lost_together_stop_the_group():
    """The verdict rests on answers of all that live, and reaches all."""
    with server() as q:
        pids = q.pids()
        pair = roles(q, 2)
        for i in pair:
            os.kill(pids[i], signal.SIGSTOP)
        for i in pair:
            os.kill(pids[i], signal.SIGKILL)
        for i in range(3):
            wait_until("replica %d says so" % i, lambda: info(q, i)["group"] == "stopped")
        c = q.client(other(pair))
        assert "CLUSTERDOWN" in str(c.call("SET", "b", "1"))


def test_no_position_is_invented_when_all_is_lost():
    with server("--restart", "no") as q:
        c = q.client(2)
        check("set", c.call("SET", "a", "1"), b"OK")
        for pid in q.pids():
            os.kill(pid, signal.SIGKILL)
        wait_until("last words", lambda: "all data is lost" in q.log_so_far())
        assert "had been decided" not in q.log_so_far(), q.log_so_far()


main(sys.argv[3:], globals())
