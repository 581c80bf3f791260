"""How a server ends: which requests are answered, which are given up, and its
log.

Usage: test_shutdown.py QUOIND QUOIN [NAME...]

For writes that wait, two of three replicas are stopped: no other leader or
acceptor can be found.
"""
import os
import re
import signal
import subprocess
import sys

from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Client, end_with_parent, Quoind

PATH = sys.argv[1]
SET = Client.encode("SET", "k", "v")
GET = Client.encode("GET", "k")
PING = Client.encode("PING")


def stop(q, *replicas):
    """Stopped, and observed to be stopped."""
    for i in replicas:
        pid = q.pids()[i]
        os.kill(pid, signal.SIGSTOP)
        wait_until("stopped", lambda: state(pid) == "T")


def state(pid):
    with open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0]


def sent(q, replica, data):
    """A connection whose bytes the replica has read: it answered a later
    request on another connection."""
    c = q.client(replica)
    c.send(data)
    other = q.client(replica)
    for _ in range(3):
        check("ping", other.call("PING"), b"PONG")
    other.close()
    return c


def terminate(q):
    """Sends the signal, and waits until it is received."""
    q.proc.send_signal(signal.SIGTERM)
    wait_until("draining", lambda: b"draining" in
               os.pread(q.errors.fileno(), 1 << 20, 0))


def ended(q):
    """Its status, and its warnings after `draining`. Changes of the leader are
    ignored: a stopped leader may be deposed before it continues."""
    status = q.proc.wait(60)
    log = os.pread(q.errors.fileno(), 1 << 20, 0).decode()
    said = log.split("a second signal ends the server at once\n")[1]
    said = [re.sub(r"^\S+ ", "", line) for line in said.splitlines()]
    return status, "\n".join(x for x in said if " info: " not in x)


def replies(c):
    """All bytes until the server closes."""
    got = []
    try:
        while True:
            got.append(c.reply())
    except ConnectionError:
        return got


def test_what_was_asked_is_answered():
    """Pipelines at all replicas, held back by a stopped one, which continues
    once the server drains."""
    with Quoind(PATH, args=["--shutdown-timeout", "3600"]) as q:
        stop(q, 0, 1)
        c = sent(q, 2, (SET + GET + PING) * 1000)
        terminate(q)
        for pid in q.pids()[:2]:
            os.kill(pid, signal.SIGCONT)
        check("replies", replies(c), [b"OK", b"v", b"PONG"] * 1000)
        check("end", ended(q), (0, ""))


def test_what_has_come_and_was_not_read_is_answered():
    """Bytes of a connection, and connections, that waited in their queues when
    the replica received the signal. Connections without a request are not
    waited for."""
    with Quoind(PATH, args=["--shutdown-timeout", "3600"]) as q:
        old = q.client(2)
        check("old", old.call("PING"), b"PONG")
        pid = q.pids()[2]
        stop(q, 2)
        os.kill(pid, signal.SIGTERM)
        old.send(SET * 10 + GET)
        new = [q.client(2) for _ in range(20)]
        for c in new[1:]:
            c.send(PING)
        os.kill(pid, signal.SIGCONT)
        for c in new[1:]:
            check("new", replies(c), [b"PONG"])
        check("old", replies(old), [b"OK"] * 10 + [b"v"])
        check("silent", replies(new[0]), [])
        wait_until("it has left", lambda: not os.path.exists("/proc/%d" % pid))
        check("others", q.client(0).call("GET", "k"), b"v")


def test_what_cannot_be_answered_is_given_up_and_counted():
    """Seven writes and the requests behind them, a read that waits for its
    index. The server does not wait for them."""
    with Quoind(PATH, args=["--shutdown-timeout", "0"]) as q:
        held = q.client(2)
        held.call("DEBUG", "HOLD-LEARNS", 1)
        q.client(0).call("SET", "k", "v")
        reader = sent(q, 2, GET + PING)
        stop(q, 0, 1)
        writer = sent(q, 2, SET * 7 + GET + PING * 2)
        terminate(q)
        check("reader", replies(reader), [])
        check("writer", replies(writer), [])
        for pid in q.pids()[:2]:
            os.kill(pid, signal.SIGCONT)
        check("end", ended(q), (1, line("12")))


def line(text):
    return "quoind warn: shutdown-timeout is over; replies not given: %s" % text


def test_the_silent_are_killed():
    """Two are stopped permanently; the last setting of the limit applies."""
    with Quoind(PATH, args=["--shutdown-timeout", "3600"]) as q:
        check("set", q.client(0).call("CONFIG", "SET", "shutdown-timeout", 0),
              b"OK")
        stop(q, 0, 1)
        writer = sent(q, 2, SET)
        pids = q.pids()
        terminate(q)
        check("end", ended(q),
              (1, line("1; killed, since silent: replicas 0 1")))
        check("writer", replies(writer), [])
        check("left", [p for p in pids if os.path.exists("/proc/%d" % p)], [])


def test_a_client_that_does_not_read_is_given_up():
    with Quoind(PATH, args=["--shutdown-timeout", "0"]) as q:
        q.client(0).call("SET", "k", "v" * 1000000)
        lazy = sent(q, 0, GET * 50)
        terminate(q)
        status, said = ended(q)
        check("status", status, 1)
        assert 1 <= int(said.split("given: ")[1]) <= 50, said
        lazy.close()


def test_waits_end_with_what_is_there():
    """WAIT for more replicas than exist, and without a timeout."""
    with Quoind(PATH, args=["--shutdown-timeout", "3600"]) as q:
        c = sent(q, 0, SET + Client.encode("WAIT", 5, 0) + PING)
        check("set", c.reply(), b"OK")
        terminate(q)
        got = replies(c)
        assert len(got) == 2 and got[0] <= 2 and got[1] == b"PONG", got
        check("end", ended(q), (0, ""))


def test_who_leaves_meets_an_end_in_the_same_turn():
    """It is asked to leave while it is stopped, and then another one ends,
    which the supervisor cannot announce to it before."""
    with Quoind(PATH) as q:
        pids = q.pids()
        stop(q, 1)
        os.kill(q.proc.pid, signal.SIGSTOP)
        os.kill(pids[1], signal.SIGTERM)
        os.kill(pids[2], signal.SIGKILL)
        wait_until("ended", lambda: state(pids[2]) == "Z")
        os.kill(pids[1], signal.SIGCONT)
        check("others", q.client(0).call("PING"), b"PONG")
        os.kill(q.proc.pid, signal.SIGCONT)
        wait_until("it has left", lambda: not os.path.exists(
            "/proc/%d" % pids[1]))
        check("aborted", "Assertion" in q.log_so_far(), False)


def test_the_whole_process_group_may_be_told():
    """As systemd, docker and timeout do: each replica receives the signal
    itself.
    """
    for run in range(20):
        with Quoind(PATH, group=True) as q:
            waiting = [q.client() for _ in range(20)]
            for c in waiting[::2]:
                c.close()
            os.killpg(q.proc.pid, signal.SIGTERM)
            check("end of run %d" % run, ended(q), (0, ""))


def test_a_hang_up_ends_it_unless_it_was_ignored_at_start():
    """With nohup, the end of the terminal does not end the server."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        with Quoind(PATH, group=True) as q:
            os.killpg(q.proc.pid, signal.SIGHUP)
            check("status", q.proc.wait(60), 0)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Quoind(PATH, group=True) as q:
            os.killpg(q.proc.pid, signal.SIGHUP)
            for i in range(3):
                check("it continues", q.client(i).call("SET", "k", i), b"OK")
            wait_until("none was lost", lambda: len(q.pids()) == 3)
            assert "draining" not in q.log_so_far()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_standard_descriptors_may_be_closed():
    """Descriptors that get their numbers receive no log lines and are closed
    normally."""
    for closed in (0,), (1,), (2,), (0, 1, 2):
        with Quoind(PATH) as q:  # it prints the free ports
            port = q.port
        shell = " ".join("%d>&-" % fd for fd in closed)
        proc = subprocess.Popen(["sh", "-c", "exec %s --port %d %s" %
                                 (PATH, port, shell)],
                                preexec_fn=end_with_parent)
        wait_until("it answers", lambda: ping(port))
        for fd in closed:
            check("descriptor %d" % fd, os.readlink("/proc/%d/fd/%d" % (
                proc.pid, fd)), "/dev/null")
        proc.send_signal(signal.SIGTERM)
        check("status", proc.wait(60), 0)


def ping(port):
    try:
        c = Client(port)
        answer = c.call("PING")
        c.close()
        return answer == b"PONG"
    except OSError:
        return False


def test_config_get_and_set():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        name = "shutdown-timeout"
        check("default", cs[0].call("CONFIG", "GET", name),
              [name.encode(), b"10"])
        check("set", cs[1].call("CONFIG", "SET", name, 3), b"OK")
        for c in cs:
            wait_until("everywhere", lambda: c.call("CONFIG", "GET", name) ==
                       [name.encode(), b"3"])


main(sys.argv[3:], globals())
