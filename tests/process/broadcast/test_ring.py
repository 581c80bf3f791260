"""Decided batches over a diamond ring: --topology ring:k=N. The ring is left
when a replica stops, and taken again; load is verified through stops and
deaths, with long values.

Usage: test_ring.py QUOIND QUOIN TRANSPORT [NAME...]
"""
import os
import signal
import subprocess
import sys
import tempfile
import time

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.info_view import fields, info
from tests.process.lib.quoind import Quoind
from tests.process.lib.verify import VerifiedLoad

PATH, QUOIN, TRANSPORT = sys.argv[1:4]


def server(arity, replicas):
    return Quoind(PATH, args=["--transport", TRANSPORT, "--replicas",
                              str(replicas), "--topology",
                              "ring:k=%d" % arity])


def now(q, asked=0):
    return info(q, asked)["topology_now"]


def ring_comes(q, arity, asked=0):
    """With a write now and then: a change takes the next one."""
    c = q.client(asked)

    def is_ring():
        c.call("SET", "knock", "knock")
        return now(q, asked) == "ring:k=%d" % arity

    wait_until("the ring is taken", is_ring)
    c.close()


def roles(q):
    """The leader and the acceptor, one replica with the memory acceptor."""
    lines = info(q, 0)
    return {int(lines["leader"]), int(lines["acceptor"])}


def back(q, asked, replica, pid):
    wait_until("replica %d is back" % replica, lambda: fields(
        info(q, asked), replica).get("state") == "online" and
        q.pids()[replica] != pid)


def test_a_stopped_replica_ends_the_ring_and_writes_go_on():
    for arity in (2, 3):
        with server(arity, 5) as q:
            ring_comes(q, arity)
            other = max(set(range(5)) - roles(q))
            # On a busy machine the ring may have been left and come again.
            ring_comes(q, arity, asked=1 if other != 1 else 2)
            os.kill(q.pids()[other], signal.SIGSTOP)
            c = q.client(0)
            begun = time.monotonic()
            for i in range(50):
                check("set", c.call("SET", "key%d" % i, "v" * i), b"OK")
            took = time.monotonic() - begun
            assert took < 2, "writes wait for what is stopped: %.1f s" % took
            wait_until("the tree is taken", lambda: now(q) == "tree")
            lines = info(q, 0)
            assert "is behind" in lines["topology_reason"] or \
                "is suspected" in lines["topology_reason"], lines
            assert int(lines["topology_changes"]) > 1, lines
            os.kill(q.pids()[other], signal.SIGCONT)
            c.close()
            ring_comes(q, arity)
            assert q.logged("decided batches go along the tree now: member"), \
                "no line says it"
            agree(q)


def test_load_is_linearizable_while_the_ring_comes_and_goes():
    """A replica that does not lead is stopped, another one is killed, and the
    leader is killed."""
    with server(2, 4) as q:
        ring_comes(q, 2)
        with VerifiedLoad(q, QUOIN, "--mix", "get:4,set:2,incr:2", "--rate",
                          "1k", "--connections", "8", "--spread",
                          "request") as verified:
            verified.answered(1)
            pids = q.pids()
            others = sorted(set(range(4)) - roles(q))
            os.kill(pids[others[0]], signal.SIGSTOP)
            verified.second()
            os.kill(pids[others[0]], signal.SIGCONT)
            for dead in (others[1], int(info(q, others[0])["leader"])):
                pid = q.pids()[dead]
                os.kill(pid, signal.SIGKILL)
                back(q, others[0], dead, pid)
                verified.answered(1)
            summary, text, status = verified.end()
        assert status == 0, text
        check("verdict", summary["verify"]["verdict"], "linearizable")
        ring_comes(q, 2, others[0])
        agree(q)


def test_long_values_go_over_a_ring():
    with server(2, 4) as q:
        ring_comes(q, 2)
        c = q.client(1)
        for i in range(24):
            value = bytes([97 + i]) * (65536 << i % 5)
            check("set", c.call("SET", "long%d" % (i % 8), value), b"OK")
            check("get", c.call("GET", "long%d" % (i % 8)), value)
        c.close()
        agree(q)


def refused(says, *args):
    got = subprocess.run([PATH, "--port", "0", *args], capture_output=True,
                         timeout=60, check=False, text=True)
    check("status", got.returncode, 2)
    check("lines", len(got.stderr.splitlines()), 1)
    assert says in got.stderr, got.stderr


def test_an_unsuitable_ring_is_refused():
    refused("a ring has an arity of 1 to 8", "--topology", "ring:k=9")
    refused("a ring of arity 3 needs 4 replicas; there are 3", "--replicas",
            "3", "--topology", "ring:k=3")


def test_a_configuration_file_names_it():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as f:
        f.write("topology ring:k=1\n")
        f.flush()
        server_of_file = Quoind(PATH, args=["--transport", TRANSPORT])
        server_of_file.cmd.insert(1, f.name)
        with server_of_file as q:
            lines = info(q, 0)
            check("topology", lines["topology"], "ring:k=1")
            assert lines["topology_ring_order"] in ("number", "map"), lines
            ring_comes(q, 1)


def test_without_a_ring_info_says_why():
    with Quoind(PATH, args=["--transport", TRANSPORT]) as q:
        lines = info(q, 2)
        check("now", lines["topology_now"], "tree")
        assert "topology_ring_order" not in lines, lines
        check("why", lines["topology_reason"], "without measured costs of "
              "cores a ring is not looked at")


main(sys.argv[4:], globals())
