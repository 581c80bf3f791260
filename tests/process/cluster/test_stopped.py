"""The memory acceptor: all followers are stopped until the log has overwritten
entries that they lack, then the leader is lost. The group reports that it has
stopped, or which replica it waits for; and `quoin recover` restarts it.

Usage: test_stopped.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import subprocess
import sys

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.verdicts import told
from tests.process.lib.info_view import fields, info

PATH, QUOIN = sys.argv[1:3]
RING_BYTES = 16 << 20
# A leader continues alone once it has waited for the followers.
OPTIONS = ["--repl-backlog-size", str(RING_BYTES),
           "--min-replicas-to-write", "0"]
VALUE = b"x" * (64 << 10)
STOPPED = "CLUSTERDOWN the group has stopped: its leader was lost with slots " \
          "that no other replica has; run quoin recover"


def server():
    return Quoind(PATH, args=OPTIONS)


def log_of(q):
    return q.log_so_far()


def fill(q):
    c = q.client(0)
    check("fill", set(c.pipeline(*[("SET", "key%d" % i, i)
                                   for i in range(500)])), {b"OK"})
    check("everywhere", c.call("WAIT", "2", "0"), 2)
    c.close()


def write_past_the_ring(q, leader):
    """Until it has overwritten all former entries: it keeps at most two laps.
    """
    c = q.client(leader)
    for i in range(4 * RING_BYTES // len(VALUE) + 64):
        c.send(Client.encode("SET", "big%d" % (i % 64), VALUE))
        if i >= 16:  # in flight
            check("write", c.reply(), b"OK")
    check("the last ones", {c.reply() for _ in range(16)}, {b"OK"})
    check("the newest", c.call("SET", "marker", "1"), b"OK")
    c.close()


def lose_the_leader(q):
    """Stops the others. @return them and their process ids."""
    leader = int(info(q, 0)["leader"])
    pids = q.pids()
    others = [i for i in range(3) if i != leader]
    for i in others:
        os.kill(pids[i], signal.SIGSTOP)
    write_past_the_ring(q, leader)
    os.kill(pids[leader], signal.SIGKILL)
    return others, {i: pids[i] for i in others}


def group_is(q, replica, state):
    wait_until("replica %d says that the group is %s" % (replica, state),
               lambda: info(q, replica)["group"] == state)


def has_stopped(q, replica):
    group_is(q, replica, "stopped")
    i = info(q, replica)
    check("roles", (i["leader"], i["acceptor"], i["in_sync"]),
          ("none", "none", ""))
    c = q.client(replica)
    got = c.call("SET", "key", "2")
    assert isinstance(got, Error) and str(got) == STOPPED, got
    c.close()


def said(q):
    """The one error line. @return its numbers."""
    lines = q.logged("has stopped")
    check("one line", len(lines), 1)
    assert " error: " in lines[0] and "quoin recover" in lines[0], lines
    found = told(lines)
    assert found, lines
    at = found[0]
    check("nothing between", (at["lost"], at["lo"]),
          (at["kept"] + 1, at["upto"] + 1))
    assert at["lost"] <= at["upto"] and at["lo"] <= at["hi"], lines
    return at["who"], at["kept"], at["hi"]


def recover(q, replica):
    done = subprocess.run([QUOIN, "recover", "--yes", "--to",
                           "127.0.0.1:%d" % (q.port + 1 + replica)],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def serves(q):
    """All have the kept entries, none of the lost ones, and accept writes."""
    for i in range(3):
        wait_until("replica %d is back" % i, lambda:
                   fields(info(q, i), i).get("state") == "online")
    for i in range(3):
        c = q.client(i)
        check("kept", c.pipeline(*[("GET", "key%d" % k) for k in range(500)]),
              [b"%d" % k for k in range(500)])
        check("lost", c.call("EXISTS", "marker"), 0)
        check("write", c.call("SET", "new%d" % i, "1"), b"OK")
        c.close()
    agree(q)


def test_overwritten_entries_are_lost_and_reported():
    with server() as q:
        fill(q)
        others, pids = lose_the_leader(q)
        for i in others:
            os.kill(pids[i], signal.SIGCONT)
        for i in others:
            has_stopped(q, i)
        most, kept, hi = said(q)
        assert most in others, most
        status, text, wrong = recover(q, others[0])
        check("status", (status, wrong), (0, ""))
        assert "Positions %d to %d may be lost" % (kept + 1, hi) in text, text
        assert "the leader was lost" in text, text
        lines = q.logged("are lost")
        assert len(lines) == 1 and "%d to %d" % (kept + 1, hi) in lines[0], \
            lines
        serves(q)
        victim = int(info(q, 0)["leader"])  # a fail-over like any other
        pid = q.pids()[victim]
        os.kill(pid, signal.SIGKILL)
        c = q.client((victim + 1) % 3)
        check("continues", c.call("SET", "again", "1"), b"OK")
        c.close()
        # Otherwise it would end while the server drains: status 1.
        wait_until("its end is seen", lambda: "(process %d) was ended" % pid
                   in log_of(q))
    check("status", q.status, 0)


def test_a_stopped_replica_is_waited_for():
    with server() as q:
        fill(q)
        (first, second), pids = lose_the_leader(q)
        os.kill(pids[first], signal.SIGCONT)
        group_is(q, first, "waiting")
        check("waits for", info(q, first)["group_waits_for"], str(second))
        wait_until("one line", lambda: "the group waits" in log_of(q))
        line, = q.logged("the group waits")
        assert "replica %d (process %d)" % (second, pids[second]) in line, line
        status, _, wrong = recover(q, first)
        check("not yet", status, 1)
        assert "stalled replica" in wrong, wrong
        os.kill(pids[second], signal.SIGKILL)
        has_stopped(q, first)
        check("the longest log", said(q)[0], first)
        check("status", recover(q, first)[0], 0)
        serves(q)


OVERWRITTEN = "CLUSTERDOWN the group has stopped: its leader has overwritten " \
              "the accept register; see the server's log"


def overwritten(q, replica):
    """What a client, INFO and the tool say of a group whose leader has
    overwritten the accept register."""
    i = info(q, replica)
    check("INFO", (i["group"], i["group_reason"], i["leader"], i["in_sync"]),
          ("stopped", "overwritten", "none", ""))
    c = q.client(replica)
    got = c.call("SET", "key", "2")
    assert isinstance(got, Error) and str(got) == OVERWRITTEN, got
    check("reads go on", c.call("GET", "key1"), b"1")
    c.close()
    status, _, wrong = recover(q, replica)
    check("not recovered", status, 1)
    assert "overwritten" in wrong, wrong


def test_an_overwritten_accept_register_is_reported():
    """Also when nothing is written. (0, 0) is below what was applied."""
    with server() as q:
        fill(q)
        check("reason", info(q, 0)["group_reason"], "none")
        leader = int(info(q, 0)["leader"])
        other = q.client((leader + 1) % 3)
        got = other.call("DEBUG", "OVERWRITE-REGISTER", 0, 0)
        assert isinstance(got, Error) and "leader" in str(got), got
        other.close()
        c = q.client(leader)
        check("overwrite", c.call("DEBUG", "OVERWRITE-REGISTER", 0, 0), b"OK")
        c.close()
        for i in range(3):
            group_is(q, i, "stopped")
            overwritten(q, i)
        wait_until("one line", lambda: "accept register" in log_of(q))
        line, = q.logged("accept register")
        assert " error: " in line and "its leader, replica %d," % leader \
            in line, line
    check("status", q.status, 1)


def test_a_server_that_ends_with_a_stopped_group_reports_it():
    with server() as q:
        fill(q)
        others, pids = lose_the_leader(q)
        for i in others:
            os.kill(pids[i], signal.SIGCONT)
        for i in others:
            has_stopped(q, i)
    check("status", q.status, 1)
    lines = [x for x in q.log.splitlines() if "was not recovered" in x]
    check("one line", len(lines), 1)


main(sys.argv[3:], globals())
