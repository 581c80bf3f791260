"""A server whose replicas read no memory of each other for agreement
(`--shared-state no`): positions and reads go by message.

Usage: test_shared_state.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import socket
import subprocess
import sys

from tests.process.cluster.adoption import (adopt, alone, complete, end_well, fill,
                                            kill_replicas, kill_supervisor, pids_of)
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


# ---- what the server says beside the log ----

def test_clients_are_counted_by_message():
    with server("--maxclients", "12") as q:
        held = [q.client(0) for _ in range(10)]
        for c in held:
            check("served", c.call("PING"), b"PONG")

        def refused():
            try:
                with socket.create_connection(("127.0.0.1", q.port + 3)) as c:
                    c.sendall(b"PING\r\n")
                    return b"max number of clients" in c.recv(100)
            except ConnectionError:
                return True
        more = []

        def served():
            more.append(q.client(1))
            if more[-1].call("PING") == b"PONG":
                return True
            more.pop().close()  # it has not heard of an earlier one's end
            return False
        wait_until("the eleventh", served)
        wait_until("the twelfth", served)
        wait_until("replica 2 has heard of 12", refused)
        for c in held[:5]:
            c.close()
        wait_until("replica 2 has heard of 7", lambda: not refused())
        for c in held[5:] + more:
            c.close()


# ---- voters' records ----

RECORD = "/memfd:quoin-record (deleted)"
LOST = "its voting record is damaged"


def records(pid):
    """(inodes that it has open, inodes that it maps): of voters' records."""
    opened = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            if os.readlink(path) == RECORD:
                opened.add(os.stat(path).st_ino)
        except FileNotFoundError:
            pass  # closed meanwhile
    with open("/proc/%d/maps" % pid) as f:
        return opened, {int(line.split()[4]) for line in f if RECORD in line}


def record_of(q, replica):
    """The inode of its own one, which is all that it has."""
    opened, mapped = records(pids_of(q)[replica])
    check("mapped by %d" % replica, mapped, opened)
    check("one at %d" % replica, len(opened), 1)
    return opened.pop()


def restarted(q, replica, asked):
    pid = pids_of(q)[replica]
    os.kill(pid, signal.SIGKILL)
    wait_until("replica %d is back" % replica, lambda: fields(
        info(q, asked), replica).get("state") == "online" and
        pids_of(q).get(replica, pid) != pid)


def test_a_voter_finds_its_record_which_is_nobody_elses():
    with server() as q:
        before = [record_of(q, i) for i in range(3)]
        check("different", len(set(before)), 3)
        check("the supervisor's", records(q.proc.pid), (set(before), set()))
        n = fill(q)
        for victim in (2, 0, 1):
            restarted(q, victim, (victim + 1) % 3)
            check("the same", record_of(q, victim), before[victim])
            n.add(victim, 20)
        end_well(q, n)
        assert LOST not in q.log_so_far(), q.log_so_far()
    with Quoind(PATH) as q:  # all map the commons anyway
        check("with shared state", records(q.pids()[0]), (set(), set()))


def test_a_new_supervisor_gets_the_records_of_those_that_live():
    """Another replica died in between, and its record with it."""
    with server() as q:
        before = [record_of(q, i) for i in range(3)]
        n = fill(q)
        kill_supervisor(q)
        for i in range(3):
            alone(q, i)
        kill_replicas(q, 2)
        adopt(q, 2)
        complete(q)
        check("living", [record_of(q, i) for i in range(2)], before[:2])
        check("the dead one's is new", record_of(q, 2) in before, False)
        wait_until("it votes again", lambda: "votes again" in q.log_so_far())
        check("lost", len(q.logged(LOST)), 1)
        restarted(q, 0, 1)  # by the new supervisor
        check("the same", record_of(q, 0), before[0])
        restarted(q, 2, 1)
        end_well(q, n)
        check("lost", len(q.logged(LOST)), 1)


# ---- the end ----

def test_no_position_is_invented_when_all_is_lost():
    with server("--restart", "no") as q:
        c = q.client(2)
        check("set", c.call("SET", "a", "1"), b"OK")
        for pid in q.pids():
            os.kill(pid, signal.SIGKILL)
        wait_until("last words", lambda: "all data is lost" in q.log_so_far())
        assert "had been decided" not in q.log_so_far(), q.log_so_far()


main(sys.argv[3:], globals())
