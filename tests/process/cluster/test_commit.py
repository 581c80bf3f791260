"""commit-timeout: replies while the group decides nothing.

Usage: test_commit.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys
import time

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.quoind import Error, Quoind
from tests.process.lib.info_view import info, look

PATH = sys.argv[1]
UNKNOWN = "ERR write outcome unknown, read before retrying"
DOWN = "CLUSTERDOWN no quorum of replicas"
ONE = ["--commit-timeout", "1"]


def texts(replies):
    return [str(r) if isinstance(r, Error) else r for r in replies]


def check_unknown_then_down(c):
    """Requests sent before the timeout have an unknown outcome; later ones are
    refused. The order holds, reads continue."""
    got = texts(c.pipeline(("INCR", "n"), ("GET", "n"), ("ECHO", "e"),
                           ("APPEND", "text", "x"), ("GET", "other")))
    check("first", got[:3], [UNKNOWN, b"1", b"e"])
    check("behind", got[3] in (UNKNOWN, DOWN), True)
    check("read", got[4], b"o")
    check("then", texts(c.pipeline(("APPEND", "down", "x"), ("PING",),
                                   ("GET", "down"), ("APPEND", "down", "y"))),
          [DOWN, b"PONG", None, DOWN])
    return got[3] == UNKNOWN


def check_after(q, c, twice):
    """The group continues: requests with an unknown outcome are applied at
    most once, refused ones never."""
    wait_until("it continues", lambda: c.call("SET", "on", 1) == b"OK")
    check("n", c.call("GET", "n"), b"2")
    check("text", c.call("GET", "text"), b"x" if twice else None)
    check("down", c.call("GET", "down"), None)
    check("n", c.call("INCR", "n"), 3)
    agree(q)


def prepare(c):
    check("before", c.pipeline(("INCR", "n"), ("SET", "other", "o")),
          [1, b"OK"])


def test_a_majority_stands_still():
    with Quoind(PATH, args=["--acceptor", "process", *ONE]) as q:
        v = look(q, [0])
        others = {v.leader, v.acceptor}
        left = ({0, 1, 2} - others).pop()
        c = q.client(left)
        prepare(c)
        pids = q.pids()
        for i in others:
            os.kill(pids[i], signal.SIGSTOP)
        twice = check_unknown_then_down(c)
        for i in others:
            os.kill(pids[i], signal.SIGCONT)
        check_after(q, c, twice)


def test_a_majority_has_ended_for_good():
    """Every waiting request is answered, and the server can be ended."""
    with Quoind(PATH, args=["--acceptor", "process", "--restart", "no",
                            *ONE]) as q:
        v = look(q, [0])
        others = {v.leader, v.acceptor}
        c = q.client(({0, 1, 2} - others).pop())
        prepare(c)
        pids = q.pids()
        for i in others:
            os.kill(pids[i], signal.SIGKILL)
        check_unknown_then_down(c)
        check_unknown = texts([c.call("SET", "x", 1)])
        check("later", check_unknown, [DOWN])


def test_a_replica_that_learns_nothing():
    """Its writes are decided, and applied by the others; it cannot know this,
    nor serve a read."""
    with Quoind(PATH, args=ONE) as q:
        v = look(q, [0])
        c, reader = [q.client((v.leader + 1) % 3) for _ in range(2)]
        other = q.client(v.leader)
        prepare(c)
        check("hold", c.call("DEBUG", "HOLD-LEARNS", 1), b"OK")
        check("elsewhere", other.call("INCR", "n"), 2)
        reader.send(reader.encode("GET", "n") + reader.encode("ECHO", "e"))
        check("its own", texts(c.pipeline(("INCR", "n"), ("GET", "n"),
                                          ("INCR", "n"), ("PING",))),
              [UNKNOWN, DOWN, UNKNOWN, b"PONG"])
        check("a read", texts([reader.reply(), reader.reply()]), [DOWN, b"e"])
        check("then", texts([c.call("INCR", "n")]), [DOWN])
        wait_until("it is applied", lambda: other.call("GET", "n") == b"4")
        check("release", c.call("DEBUG", "HOLD-LEARNS", 0), b"OK")
        wait_until("it continues", lambda: c.call("SET", "on", 1) == b"OK")
        check("n", c.call("INCR", "n"), 5)
        agree(q)


def fill(c, mib, size):
    """`mib` MiB, in values of `size` bytes."""
    n = (mib << 20) // size
    for i in range(0, n, 16):
        got = c.pipeline(*[("SET", "fill%d" % k, b"v" * size)
                           for k in range(16)])
        check("fill", set(got), {b"OK"})


def covered(q, writes):
    """Replies to a follower's client for writes that the others apply and the
    follower receives in a snapshot. @return replies, INFO"""
    leader = look(q, [0]).leader
    follower = (leader + 1) % 3
    # Not in one connection: the second one's replies come late.
    switch, c, other = [q.client(i) for i in (follower, follower, leader)]
    check("hold", switch.call("DEBUG", "HOLD-LEARNS", 1), b"OK")
    fill(other, 2, 500)  # its channel
    c.send(b"".join(c.encode(*w) for w in writes))
    wait_until("they are applied",
               lambda: other.call("GET", "last") == b"written")
    fill(other, 320, 1 << 20)  # more than the log keeps, QN_LOG_BYTES
    assert c.silent(), "answered before it knows"
    check("release", switch.call("DEBUG", "HOLD-LEARNS", 0), b"OK")
    replies = texts([c.reply() for _ in writes])
    check("reads", c.call("GET", "last"), b"written")
    check("continues", c.call("SET", "last", "again"), b"OK")
    agree(q)
    return replies, info(q, leader)


def test_writes_that_a_snapshot_contains():
    """SET returns +OK for any state; the result of INCR is unknown."""
    with Quoind(PATH) as q:
        replies, i = covered(q, [("SET", "a", 1)] * 20 +
                             [("INCR", "a"), ("SET", "last", "written")])
        check("replies", replies, [b"OK"] * 20 + [UNKNOWN, b"OK"])
        check("ok", i["writes_covered_ok"], "21")
        check("unknown", i["writes_unknown_snapshot"], "1")
        check("timeout", i["writes_unknown_timeout"], "0")


def test_writes_that_a_snapshot_contains_and_one_was_refused():
    """Up to the refused one the results are unknown."""
    with Quoind(PATH) as q:
        check("limit", q.client(0).call("CONFIG", "SET", "max-key-len", 10),
              b"OK")
        replies, i = covered(q, [("SET", "a", 1)] * 20 +
                             [("SET", "much too long", 1)] +
                             [("SET", "a", 2)] * 20 +
                             [("SET", "last", "written")])
        check("replies", replies, [UNKNOWN] * 21 + [b"OK"] * 21)
        check("ok", i["writes_covered_ok"], "21")
        check("unknown", i["writes_unknown_snapshot"], "21")


def test_reads_that_came_together_are_refused_together():
    """Each by its own age: the second one does not get a timeout of its own
    after the first one. Later requests have their own."""
    with Quoind(PATH, args=ONE) as q:
        leader = look(q, [0]).leader
        c, later = [q.client((leader + 1) % 3) for _ in range(2)]
        other = q.client(leader)
        prepare(c)
        check("hold", c.call("DEBUG", "HOLD-LEARNS", 1), b"OK")
        check("elsewhere", other.call("INCR", "n"), 2)
        c.send(b"".join(c.encode(*r) for r in [("GET", "n"), ("PING",),
                                               ("GET", "n"), ("GET", "n")]))
        check("first", texts([c.reply()]), [DOWN])
        later.send(later.encode("GET", "n"))
        check("between", texts([c.reply(), c.reply()]), [b"PONG", DOWN])
        check("later", texts([later.reply()]), [DOWN])
        check("it came before", c.silent(), False)
        check("last", texts([c.reply()]), [DOWN])
        check("release", c.call("DEBUG", "HOLD-LEARNS", 0), b"OK")
        wait_until("it continues", lambda: c.call("SET", "on", 1) == b"OK")
        check("n", c.call("GET", "n"), b"2")


def test_the_time_is_the_replicas_own():
    """A replica that was stopped itself gives up nothing for that."""
    with Quoind(PATH, args=ONE) as q:
        clients = [q.client(i) for i in range(3)]
        for pid in q.pids():
            os.kill(pid, signal.SIGSTOP)
        for c in clients:
            c.send(c.encode("INCR", "n"))
        time.sleep(1.5)  # the elapsed time is what the test measures
        for pid in q.pids():
            os.kill(pid, signal.SIGCONT)
        check("all", sorted(c.reply() for c in clients), [1, 2, 3])


def test_no_limit():
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        c = q.client(0)
        check("off", c.call("CONFIG", "GET", "commit-timeout"),
              [b"commit-timeout", b"0"])
        check("set", c.call("CONFIG", "SET", "commit-timeout", "2"), b"OK")
        check("on", c.call("CONFIG", "GET", "commit-timeout"),
              [b"commit-timeout", b"2"])


main(sys.argv[3:], globals())
