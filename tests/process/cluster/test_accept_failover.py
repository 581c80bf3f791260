"""New connections to a server while replicas are dead or stopped.

Usage: test_accept_failover.py QUOIND QUOIN [NAME...]

Each connection is answered; the longest wait is printed, but not checked.
"""
import os
import signal
import socket
import sys
import tempfile
import time

from tests.process.lib.checks import check, lands_on, main, shares, wait_until
from tests.process.lib.quoind import Client, DEADLINE, Quoind

PATH = sys.argv[1]
PING = Client.encode("PING")
CONNECTIONS = 200


class UnixClient(Client):
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(DEADLINE)
        self.sock.connect(path)
        self.buf = b""


def connect_all(connect, count):
    """Connects one after the other; each is answered. @return the replicas
    that answered, and the longest time, s."""
    longest = 0.0
    by = set()
    for _ in range(count):
        started = time.monotonic()
        c = connect()
        check("ping", c.call("PING"), b"PONG")
        longest = max(longest, time.monotonic() - started)
        by.add(c.call("CLIENT", "ID") % 64)
        c.close()
    return by, longest


def test_stopped_replicas_keep_nobody_waiting():
    """One of three, then two; a resumed replica gets its share again."""
    notes = []
    with Quoind(PATH) as q:
        pids = q.pids()
        for stopped in [2], [0, 2], [1]:
            for i in stopped:
                os.kill(pids[i], signal.SIGSTOP)
            by, longest = connect_all(q.client, CONNECTIONS)
            check("serving replicas", by & set(stopped), set())
            for i in stopped:
                os.kill(pids[i], signal.SIGCONT)
            for i in stopped:
                wait_until("a share again", lambda: lands_on(q, i))
            notes.append("%d stopped: %.0f ms" % (len(stopped), 1e3 * longest))
    return ", ".join(notes)


def test_a_hanging_replica_keeps_nobody_waiting():
    """The kernel reports it as running; its loop makes no iteration."""
    with Quoind(PATH) as q:
        at = q.client(2)
        probe = Client(q.port + 3, timeout=1)
        at.send(at.encode("DEBUG", "SLEEP", 3600))
        try:  # no connection may be accepted before it hangs
            while probe.call("PING") == b"PONG":
                pass
        except TimeoutError:
            pass
        by, longest = connect_all(q.client, CONNECTIONS)
        check("serving replicas", by, {0, 1})
        os.kill(q.pids()[2], signal.SIGKILL)
    return "%.0f ms" % (1e3 * longest)


def test_a_queue_outlives_its_replica():
    """Connections that are not accepted yet when a replica is killed, also
    without a supervisor."""
    with Quoind(PATH, args=["--restart", "no"]) as q:
        pids = q.pids()
        for victim in range(2):
            alive = pids[victim:]
            for pid in alive:
                os.kill(pid, signal.SIGSTOP)
            waiting = [q.client() for _ in range(60)]
            for c in waiting:
                c.send(PING)
            os.kill(pids[victim], signal.SIGKILL)
            for pid in alive[1:]:
                os.kill(pid, signal.SIGCONT)
            for c in waiting:
                check("ping", c.reply(), b"PONG")
                c.close()
        connect_all(q.client, 50)


def test_without_a_supervisor_dead_and_stopped_ones_are_helped_too():
    q = Quoind(PATH).__enter__()
    pids = q.pids()
    try:
        q.proc.kill()
        q.proc.wait()
        os.kill(pids[0], signal.SIGSTOP)
        os.kill(pids[1], signal.SIGKILL)
        by, _ = connect_all(q.client, 50)
        check("serving replicas", by, {2})
        os.kill(pids[0], signal.SIGCONT)
        wait_until("a share again", lambda: lands_on(q, 0))
    finally:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


class UnixQuoind(Quoind):
    def client(self, replica=None):
        at = self.cmd[-1]
        return UnixClient(at if replica is None else "%s.%d" % (at, replica))


def test_all_accept_from_a_unix_socket():
    """Any living replica accepts; placed near, they pass connections on to
    each other."""
    for how in "spread", "near":
        with tempfile.TemporaryDirectory() as d, \
                UnixQuoind(PATH, args=["--placement", how,
                                       "--unixsocket", d + "/at"]) as q:
            pids = q.pids()
            if how == "near":
                shares(q)
            os.kill(pids[0], signal.SIGSTOP)
            by, _ = connect_all(q.client, 50)
            check("serving replicas", 0 in by, False)
            os.kill(pids[1], signal.SIGKILL)
            by, _ = connect_all(q.client, 50)
            check("serving replicas", 0 in by, False)
            os.kill(pids[0], signal.SIGCONT)
            if how == "near":
                shares(q)


def test_placement_near_spreads_over_one_numa_node():
    with Quoind(PATH, args=["--placement", "near"]) as q:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        shares(q)


main(sys.argv[3:], globals())
