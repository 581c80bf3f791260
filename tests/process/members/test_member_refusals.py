"""What `quoin member` is refused, in one line, and nothing has changed then.

Usage: test_member_refusals.py QUOIND QUOIN [NAME...]
"""
import os
import subprocess
import sys

from tests.process.cluster.adoption import kill_supervisor, pids_of
from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.info_view import info
from tests.process.lib.quoind import Quoind

PATH, QUOIN = map(os.path.abspath, sys.argv[1:3])


def member(q, *words):
    """@return the exit status, what it prints, and its errors."""
    p = subprocess.run([QUOIN, "member", *words, "--to",
                        "127.0.0.1:%d" % q.port],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    return p.returncode, p.stdout, p.stderr


def refused(q, why, *words):
    before = pids_of(q)
    status, out, err = member(q, *words)
    check("status of %r" % err, (status, out), (1, ""))
    check("lines of %r" % err, err.count("\n"), 1)
    assert err.startswith("quoin member: 127.0.0.1:%d: " % q.port), err
    assert why in err, err
    check("processes", pids_of(q), before)


def done(q, *words):
    status, _, err = member(q, *words)
    check("status of %r" % err, status, 0)


def test_what_cannot_be():
    with Quoind(PATH, replicas=1, seats=2) as q:
        refused(q, "it is the last one with a vote", "remove", "--replica", "0")
        refused(q, "there is no such member", "remove", "--replica", "1")
        refused(q, "no such replica", "remove", "--replica", "2")
        done(q, "add")
        refused(q, "no seat is vacant", "add")


def test_fewer_than_writes_need():
    with Quoind(PATH, args=["--min-replicas-to-write", "2"]) as q:
        refused(q, "fewer followers than min-replicas-to-write", "remove",
                "--replica", "2")
        done(q, "remove", "--replica", "2", "--force")


def test_a_group_with_the_process_acceptor_keeps_its_size():
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        refused(q, "--acceptor process", "add")
        refused(q, "--acceptor process", "remove", "--replica", "2")
        check("lines", member(q, "list")[1].count("\n"), 3)


def test_one_that_the_machine_cannot_hold():
    """A store of that size would not fit any machine. The group may have it:
    it is told to."""
    with Quoind(PATH, replicas=1, seats=2,
                args=["--maxmemory", "1000000gb"]) as q:
        refused(q, "has not the memory for one more", "add")


def test_a_group_has_eight_seats_unless_told():
    with Quoind(PATH, args=["--maxmemory", "100mb"]) as q:
        check("seats", info(q, 0)["seats"], "8")
        done(q, "add")
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        check("seats", info(q, 0)["seats"], "3")


def test_a_limit_that_is_lowered_makes_room():
    """A single replica has all memory for its store. The limit that counts is
    the one in force."""
    with Quoind(PATH, replicas=1) as q:
        refused(q, "mb)\n", "add")
        c = q.client(0)
        check("set", c.call("CONFIG", "SET", "maxmemory", "100mb"), b"OK")
        done(q, "add")
        check("set", c.call("CONFIG", "SET", "maxmemory", "1000000gb"), b"OK")
        refused(q, "or lower maxmemory", "add")
        c.close()


def test_without_a_supervisor():
    with Quoind(PATH, replicas=1, seats=2) as q:
        pids = pids_of(q)
        kill_supervisor(q)
        wait_until("it is alone", lambda: "supervisor exited" in
                   q.log_so_far())
        refused(q, "the supervisor has ended", "add")
        refused(q, "the supervisor has ended", "list")
        os.kill(pids[0], 9)


if __name__ == "__main__":
    main(sys.argv[3:], dict(globals()))
