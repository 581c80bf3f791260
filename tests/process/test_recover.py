"""The process acceptor: leader and acceptor are lost together. The group says
that it has stopped, and `quoin recover` starts it again from the longest log.

Both are stopped before they are killed, so that none of them answers anything
in between.

Usage: test_recover.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import subprocess
import sys

from checks import agree, check, main, wait_until
from quoind import Client, Error, Quoind

PATH, QUOIN = sys.argv[1:3]
PROCESS = ["--acceptor", "process"]
STOPPED = "CLUSTERDOWN the group has stopped, its leader and acceptor were " \
          "lost together; see quoin recover"


def info(q, replica):
    """INFO's section Quoin, as that replica knows it: {name: text}."""
    c = q.client(replica)
    try:
        text = c.call("INFO", "quoin").decode()
    finally:
        c.close()
    return dict(line.split(":", 1) for line in text.splitlines()
                if ":" in line)


def part(q, asked, replica):
    """What `asked` says of `replica`: {name: text}."""
    line = info(q, asked).get("replica%d" % replica, "")
    return dict(f.split("=") for f in line.split(",") if "=" in f)


def lose_both(q):
    """Leader and acceptor. @return the one that is left."""
    roles = info(q, 0)
    both = int(roles["leader"]), int(roles["acceptor"])
    left = ({0, 1, 2} - set(both)).pop()
    pids = q.pids()
    for sig in signal.SIGSTOP, signal.SIGKILL:
        for i in both:
            os.kill(pids[i], sig)
    return left


def stopped(q, replica):
    wait_until("replica %d says that the group has stopped" % replica,
               lambda: info(q, replica)["group"] == "stopped")


def hold(q, replica, on):
    c = q.client(replica)
    check("hold", c.call("DEBUG", "HOLD-LEARNS", str(int(on))), b"OK")
    c.close()


def log_of(q):
    q.errors.flush()
    return os.pread(q.errors.fileno(), 1 << 20, 0).decode(errors="replace")


def refuses(q, replica):
    """Reads of what it has go on, writes are refused at once."""
    c = q.client(replica)
    got = c.call("SET", "key", "2")
    assert isinstance(got, Error) and str(got) == STOPPED, got
    check("read", c.call("GET", "key"), b"1")
    c.close()


def test_a_group_that_has_stopped_says_so():
    with Quoind(PATH, args=PROCESS) as q:
        check("before", info(q, 2)["group"], "serving")
        c = q.client(0)
        check("write", c.call("SET", "key", "1"), b"OK")
        check("everywhere", c.call("WAIT", "2", "0"), 2)
        c.close()
        left = lose_both(q)
        stopped(q, left)
        refuses(q, left)
        for i in range(3):
            wait_until("replica %d is back" % i, lambda:
                       part(q, left, i).get("state") == "online")
            stopped(q, i)
            refuses(q, i)
        lines = [x for x in log_of(q).splitlines() if "has stopped" in x]
        check("one line", len(lines), 1)
        assert "nothing above is known" in lines[0], lines
        assert "quoin recover" in lines[0], lines
        q.drains = False


def test_writes_under_way_are_answered():
    """Without commit-timeout, too: their outcome is unknown."""
    with Quoind(PATH, args=PROCESS) as q:
        roles = info(q, 0)
        both = int(roles["leader"]), int(roles["acceptor"])
        left = ({0, 1, 2} - set(both)).pop()
        pids = q.pids()
        c = q.client(left)
        for i in both:
            os.kill(pids[i], signal.SIGSTOP)
        c.send(Client.encode("SET", "key", "1") * 3)
        for i in both:
            os.kill(pids[i], signal.SIGKILL)
        got = {str(c.reply()) for _ in range(3)}
        check("answers", got,
              {"ERR write outcome unknown, read before retrying"})
        c.close()
        q.drains = False


def test_one_of_the_two_is_no_stop():
    with Quoind(PATH, args=PROCESS) as q:
        c = q.client(2)
        for name in "leader", "acceptor":
            victim = int(info(q, 2)[name])
            if victim == 2:
                continue
            pid = q.pids()[victim]
            os.kill(pid, signal.SIGKILL)
            check("goes on", c.call("SET", name, "1"), b"OK")
            wait_until("it is back", lambda: part(q, 2, victim).get("state") ==
                       "online" and part(q, 2, victim)["pid"] != str(pid))
        check("state", info(q, 2)["group"], "serving")
        c.close()
        assert "has stopped" not in log_of(q)
        agree(q)


main(sys.argv[3:], globals())
