"""All replicas are lost: one last line names the last replica, the lost data,
and the remedy; each time.

Usage: test_last_words.py QUOIND QUOIN [NAME...]
"""
import os
import re
import signal
import sys

from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Quoind

PATH = sys.argv[1]
ROUNDS = 5
LAST = re.compile(r"all data is lost: replica \d \(process (\d+)\) was ended by "
                  r"signal 9 \(Killed\), the last one that had it, and no "
                  r"complete replica is left. All positions up to (\d+) had "
                  r"been decided. Start quoind again: it begins empty$")


def write(q, count):
    """More than the first lap of the ring, from which new incarnations could
    rebuild all of it."""
    c = q.client(0)
    for _ in range(count):
        check("write", set(c.pipeline(*[("SET", "key%d" % i, b"x" * 4096)
                                        for i in range(100)])), {b"OK"})
    at = int(c.call("INFO", "quoin").decode().split("commit:")[1].split()[0])
    c.close()
    return at


def ends(q, pids, at):
    """The server ends by itself, with one error line, the last one. On a busy
    machine the replicas that live longest may report before that the group has
    stopped."""
    wait_until("it ends", lambda: q.proc.poll() is not None)
    check("status", q.proc.poll(), 1)
    lines = q.log_so_far().splitlines()
    check("errors", len([x for x in lines if " error: " in x and
                         "the group has stopped" not in x]), 1)
    found = LAST.search(lines[-1])
    assert found, lines[-5:]
    assert int(found.group(1)) in pids, (lines[-1], pids)
    assert int(found.group(2)) >= at, (lines[-1], at)


def rounds(kill, *args):
    for _ in range(ROUNDS):
        with Quoind(PATH, args=args) as q:
            at = write(q, 60)
            pids = q.pids()
            kill(q, pids)
            ends(q, pids, at)


def all_at_once(_, pids):
    for sig in signal.SIGSTOP, signal.SIGKILL:
        for pid in pids:
            os.kill(pid, sig)


def test_all_at_once():
    rounds(all_at_once)


def test_all_at_once_process_acceptor():
    rounds(all_at_once, "--acceptor", "process")


def test_all_at_once_and_nobody_is_started_again():
    rounds(all_at_once, "--restart", "no")


def one_by_one(q, pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        wait_until("it is seen", lambda p=pid: "process %d)" % p
                   in q.log_so_far())


def test_one_after_the_other_and_nobody_is_started_again():
    rounds(one_by_one, "--restart", "no")


def test_one_replica():
    with Quoind(PATH, replicas=1) as q:
        at = write(q, 1)
        pids = q.pids()
        all_at_once(q, pids)
        ends(q, pids, at)


def test_one_that_is_told_to_end_says_nothing_of_it():
    with Quoind(PATH) as q:
        write(q, 1)
    check("status", q.status, 0)
    assert "all data is lost" not in q.log, q.log


main(sys.argv[3:], globals())
