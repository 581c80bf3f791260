"""Flow control of real servers: a stopped follower closes the gate when the
memory kept for it is nearly full. It is waited for, or given up, or holds back
writes; values are large, the log is small.

Usage: test_flow.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys
import threading
import time

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.info_view import fields, info

PATH = sys.argv[1]
BACKLOG = 8 << 20
VALUE = b"x" * (64 << 10)
HELD = "NOREPLICAS too few replicas keep up to take a write " \
       "(min-replicas-to-write): resume the stopped replicas, or end them"


def server(acceptor, timeout_ms, least, commit_timeout=0):
    return Quoind(PATH, args=["--acceptor", acceptor,
                              "--repl-backlog-size", str(BACKLOG),
                              "--lag-timeout", str(timeout_ms),
                              "--commit-timeout", str(commit_timeout),
                              "--min-replicas-to-write", str(least)])


def write(q, leader, count, deadline=60):
    """@return replies of this many SETs, 16 of them in flight."""
    c = Client(q.port + 1 + leader, deadline)
    replies = []
    for i in range(count):
        c.send(Client.encode("SET", "key%d" % (i % 32), VALUE))
        if i >= 16:
            replies.append(c.reply())
    replies += [c.reply() for _ in range(min(16, count))]
    c.close()
    return replies


def told(q):
    """The leader's own view; it answers reads in any state of the gate."""
    return info(q, int(info(q, 0)["leader"]))


def roles(q):
    """The leader, a follower that stops, one that continues (and that no role
    of the process acceptor needs)."""
    i = info(q, 0)
    leader, acceptor = int(i["leader"]), int(i["acceptor"])
    others = [n for n in range(3) if n != leader]
    stops = [n for n in others if n != acceptor][-1]
    goes_on, = [n for n in others if n != stops]
    return leader, stops, goes_on


def complete(q):
    for n in range(3):
        wait_until("replica %d is back" % n, lambda:
                   fields(info(q, n), n).get("state") == "online")
    agree(q)


def test_what_a_stopped_follower_lacks_is_kept():
    """The leader waits for it longer than the load lasts: writes stop before
    the log overwrites entries that it lacks, no write is refused, and it needs
    no snapshot."""
    for acceptor in "memory", "process":
        with server(acceptor, 60000, 1) as q:
            leader, stops, _ = roles(q)
            check("before", set(write(q, leader, 100)), {b"OK"})
            pid = q.pids()[stops]
            os.kill(pid, signal.SIGSTOP)
            c = Client(q.port + 1 + leader, 120)
            for i in range(200):  # 13 MiB, more than the log
                c.send(Client.encode("SET", "key%d" % (i % 32), VALUE))
            wait_until("the gate is shut for it", lambda: int(
                fields(told(q), stops, "flow")["gate_shut_usec"]) > 0)
            i = told(q)
            lag = fields(i, stops, "flow")
            assert int(lag["lag_bytes"]) <= BACKLOG, lag
            check("awaited", int(lag["awaited"]), 1)
            if acceptor == "memory":
                check("in sync", i["in_sync"], "0,1,2")
            os.kill(pid, signal.SIGCONT)
            check("all of them", {c.reply() for _ in range(200)}, {b"OK"})
            c.close()
            complete(q)
            i = told(q)
            check("given up", int(i["replicas_given_up"]), 0)
            for n in range(3):
                check("snapshots", int(fields(i, n, "snapshots")["joined"]), 0)


def test_who_makes_no_progress_is_given_up_and_comes_back():
    for acceptor in "memory", "process":
        with server(acceptor, 200, 1) as q:
            leader, stops, _ = roles(q)
            pid = q.pids()[stops]
            os.kill(pid, signal.SIGSTOP)
            check("writes", set(write(q, leader, 400)), {b"OK"})
            i = told(q)
            check("given up", int(i["replicas_given_up"]), 1)
            lines = q.logged("waits no longer for member %d" % stops)
            check("one line", len(lines), 1)
            os.kill(pid, signal.SIGCONT)
            complete(q)
            wait_until("it is awaited again", lambda: fields(
                told(q), stops, "flow")["awaited"] == "1")


def run_for_a_moment(q, replica, pid):
    """A stopped follower runs until it has applied something, or lacks
    nothing."""
    def lacks():
        return int(fields(told(q), replica, "flow")["lag_bytes"])
    before = lacks()
    os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + 0.1
    while lacks() >= before > 0 and time.monotonic() < deadline:
        pass
    os.kill(pid, signal.SIGSTOP)


def test_a_slow_follower_is_given_up_and_comes_back():
    """It applies more than the minimum, intermittently: the others no longer
    wait for it; when it runs again they do."""
    with server("memory", 500, 1) as q:
        leader, slow, _ = roles(q)
        pid = q.pids()[slow]
        stop = threading.Event()

        def load():
            while not stop.is_set():
                write(q, leader, 100)

        writer = threading.Thread(target=load)
        writer.start()
        try:
            def given_up():
                run_for_a_moment(q, slow, pid)
                time.sleep(0.2)
                return "waits no longer for member %d, which applies less" \
                    % slow in q.log_so_far()
            wait_until("it is given up as slow", given_up)
            check("awaited", fields(told(q), slow, "flow")["awaited"], "0")
        finally:
            os.kill(pid, signal.SIGCONT)
            stop.set()
            writer.join()
        complete(q)

        def back():
            write(q, leader, 1)
            return fields(told(q), slow, "flow")["awaited"] == "1"
        wait_until("it is awaited again", back)


def test_the_last_follower_that_must_keep_up_holds_writes():
    """Memory acceptor: both followers stop. New writes are refused
    immediately, reads continue, and waiting writes are answered when one
    follower continues."""
    with server("memory", 200, 1) as q:
        leader, first, second = roles(q)
        pids = q.pids()
        check("before", set(write(q, leader, 10)), {b"OK"})
        for n in first, second:
            os.kill(pids[n], signal.SIGSTOP)
        waits = Client(q.port + 1 + leader, 120)

        def send():
            for i in range(200):
                waits.send(Client.encode("SET", "key%d" % (i % 32), VALUE))
        # The server reads no more of it than its bounds: the rest waits here.
        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        wait_until("writes are held", lambda: told(q)["writes_held"] == "1")
        c = Client(q.port + 1 + leader, 60)
        got = c.call("SET", "key", "1")
        assert isinstance(got, Error) and str(got) == HELD, got
        check("a read", len(c.call("GET", "key1")), len(VALUE))
        os.kill(pids[first], signal.SIGCONT)
        wait_until("writes continue", lambda: told(q)["writes_held"] == "0")
        replies = [waits.reply() for _ in range(200)]
        sender.join()
        assert replies[:60] == [b"OK"] * 60, replies  # three quarters of it fit
        assert all(str(r) == HELD for r in replies if r != b"OK"), replies
        wait_until("a write is taken", lambda:
                   c.call("SET", "key", "2") == b"OK")
        os.kill(pids[second], signal.SIGCONT)
        complete(q)


UNKNOWN = "ERR write outcome unknown, read before retrying"
LOADING = "LOADING Redis is loading the dataset in memory"


def overtaken(q, leader, stopped, keys):
    """The process is stopped until the log reaches back to it no more."""
    before = q.log_so_far().count("waits no longer for member %d" % stopped)
    os.kill(q.pids()[stopped], signal.SIGSTOP)
    check("writes", set(write(q, leader, keys)), {b"OK"})
    wait_until("it is given up", lambda: q.log_so_far().count(
        "waits no longer for member %d" % stopped) > before)
    check("writes", set(write(q, leader, 2 * BACKLOG // len(VALUE))), {b"OK"})


def test_a_replica_that_takes_a_snapshot_says_loading():
    """Its group has a quorum. It was stopped, and each time that it runs it
    makes some turns and is stopped for a tick of commit-timeout, so that the
    time-out comes before the snapshot, however fast the machine is. If the
    snapshot comes first, all is done again."""
    with server("memory", 200, 1, commit_timeout=1) as q:
        leader, stops, _ = roles(q)
        fill = Client(q.port + 1 + leader, 60)
        for i in range(1024):
            check("fill", fill.call("SET", "fill%d" % i, VALUE), b"OK")
        pid = q.pids()[stops]

        def caught():
            overtaken(q, leader, stops, 200)
            waits, asks = q.client(stops), q.client(stops)
            waits.send(Client.encode("INCR", "n"))
            reads = q.client(stops)
            reads.send(Client.encode("GET", "key1"))
            while waits.silent():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.1)
                os.kill(pid, signal.SIGCONT)
                check("a turn", asks.call("PING"), b"PONG")
            replies = [asks.call("SET", "a", "1")]
            while replies[-1] != b"OK":
                replies.append(asks.call("SET", "a", "1"))
            first = waits.reply()
            read = reads.reply()
            assert read == VALUE or str(read) == LOADING, read
            check("refused", {str(r) for r in replies[:-1]} - {LOADING}, set())
            for c in waits, asks, reads:
                c.close()
            complete(q)
            return str(first) == UNKNOWN and len(replies) > 1
        wait_until("it is asked while it takes a snapshot", caught)


main(sys.argv[3:], globals())
