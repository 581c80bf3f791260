"""Connections: which requests they wait for, their memory, their number.

Usage: test_conns.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

from tests.process.lib.checks import agree, check, main, turns, wait_until
from tests.process.lib.quoind import Client, DEADLINE, end_with_parent, Quoind
from tests.process.lib.info_view import look, parsed, pids_of

PATH = sys.argv[1]


def fill(q, c, replica, command):
    """Sends copies of it until the server accepts no more. @return the number
    of complete ones, and bytes of a further one."""
    sent = 0
    data = memoryview(command * 64)
    c.sock.setblocking(False)
    while True:
        try:
            sent += c.sock.send(data[sent % len(command):])
        except BlockingIOError:
            before = sent
            turns(q, [replica])
            try:
                sent += c.sock.send(data[sent % len(command):])
            except BlockingIOError:
                pass
            if sent == before:
                break
    c.sock.settimeout(DEADLINE)
    return divmod(sent, len(command))


def test_reads_go_on_while_writes_wait():
    """Two of three replicas are stopped, and the queue of writes is full:
    connections without a write there are answered, and no request is answered
    before an earlier write of its own connection."""
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        v = look(q, [0])
        others = {v.leader, v.acceptor}
        left = ({0, 1, 2} - others).pop()
        pids = q.pids()
        writers = [q.client(left) for _ in range(4)]
        q.client(left).call("SET", "k", "v")
        for i in others:
            os.kill(pids[i], signal.SIGSTOP)
        command = writers[0].encode("SET", "n", "x" * 60000)
        sent = [fill(q, c, left, command) for c in writers]
        reader = q.client(left)
        check("new", reader.pipeline(("PING",), ("GET", "k"), ("GET", "n")),
              [b"PONG", b"v", None])
        check("info", b"# Quoin" in reader.call("INFO", "quoin"), True)
        last = q.client(left)
        last.send(last.encode("APPEND", "m", "y") + last.encode("GET", "m") +
                  last.encode("PING"))
        turns(q, [left])
        for c in [*writers, last]:
            assert c.silent(), "answered before its write"
        for i in others:
            os.kill(pids[i], signal.SIGCONT)
        check("last", [last.reply() for _ in range(3)], [1, b"y", b"PONG"])
        writes = 0
        for c, (whole, part) in zip(writers, sent):
            if part:
                c.send(command[part:])
                whole += 1
            check("writes", [c.reply() for _ in range(whole)],
                  [b"OK"] * whole)
            writes += whole
        agree(q)
    return "%d writes waited" % writes


def rss_most(pid):
    """Bytes."""
    with open("/proc/%d/status" % pid) as f:
        lines = dict(line.split(":", 1) for line in f)
    return int(lines["VmHWM"].split()[0]) << 10


def closed(c):
    """True if only the end of the connection arrives."""
    try:
        c.reply()
        return False
    except (ConnectionError, OSError):
        return True


def test_replies_are_bounded_while_they_grow():
    """A reply of 512 MiB with a limit of 1 MiB, in every way that a reply is
    created: immediately, behind a write of the connection, and muted."""
    limit = "client-output-buffer-limit"
    with Quoind(PATH, args=["--" + limit, "1mb"]) as q:
        c = q.client(0)
        pid = q.pids()[0]
        check("get", c.call("CONFIG", "GET", limit),
              [limit.encode(), b"normal 1048576 0 0"])
        check("set", c.call("SET", "k", "x" * (1 << 16)), b"OK")
        before = rss_most(pid)
        mget = c.encode("MGET", *["k"] * 8192)
        for lead in b"", c.encode("SET", "other", 1):
            asks = q.client(0)
            asks.send(lead + mget + c.encode("PING"))
            # The write may have been answered in an earlier iteration.
            assert closed(asks) or lead and closed(asks), lead
        mute = q.client(0)
        mute.send(c.encode("CLIENT", "REPLY", "OFF") + mget +
                  c.encode("SET", "other", 2) + mget +
                  c.encode("CLIENT", "REPLY", "ON") + c.encode("PING"))
        check("muted", [mute.reply(), mute.reply()], [b"OK", b"PONG"])
        grown = rss_most(pid) - before
        assert grown < 64 << 20, "grew by %d MiB" % (grown >> 20)
        told = parsed(c.call("INFO").decode())
        check("told", told["client_output_buffer_limit_disconnections"], "2")
        assert q.logged("exceed " + limit)
        check("one line", q.log_so_far().count("exceed " + limit), 1)
        check("below it", len(c.call("MGET", *["k"] * 15)), 15)
        check("small", str(c.call("CONFIG", "SET", limit, "1kb")),
              "ERR client-output-buffer-limit must be 0 (none) or at least "
              "64kb, which the server's own replies need")
        check("soft", str(c.call("CONFIG", "SET", limit, "normal 1mb 1kb 9"))
              .endswith("there is no soft limit"), True)
        check("none", c.call("CONFIG", "SET", limit, "normal 0 0 0"), b"OK")
        check("whole", c.call("MGET", *["k"] * 100), [b"x" * (1 << 16)] * 100)
    return "grew by %d MiB" % (grown >> 20)


def test_large_replies_behind_a_write_do_not_add_up():
    """Reads behind a write of the same connection: a whole burst would be
    answered in one iteration, and exceed the limit together."""
    with Quoind(PATH, args=["--client-output-buffer-limit", "16mb"]) as q:
        c = q.client(0)
        check("set", c.call("SET", "k", "x" * (1 << 16)), b"OK")
        c.send(c.encode("SET", "a", 1) + c.encode("GET", "k") * 1000)
        check("set", c.reply(), b"OK")
        for _ in range(1000):
            check("get", c.reply(), b"x" * (1 << 16))


def test_unfinished_requests_are_bounded_and_block_nobody():
    """Clients that announce 16 MiB, send 15 and stop; then one that sends too
    much."""
    limit = "client-query-buffer-limit"
    with Quoind(PATH, args=["--proto-max-bulk-len", "20mb", "--" + limit,
                            "24mb"]) as q:
        half = [q.client(0) for _ in range(8)]
        for c in half:
            c.send(b"*3\r\n$3\r\nSET\r\n$1\r\nh\r\n$16777216\r\n" +
                   b"y" * (15 << 20))
        c = q.client(0)
        value = "z" * (1 << 20)
        for _ in range(20):
            check("others", c.pipeline(("SET", "k", value), ("STRLEN", "k")),
                  [b"OK", 1 << 20])
        over = q.client(0)
        over.send(b"*9\r\n$3\r\nDEL\r\n")
        try:
            for _ in range(8):
                over.send(b"$4194304\r\n" + b"y" * (4 << 20) + b"\r\n")
        except OSError:
            pass
        check("closed", closed(over), True)
        told = parsed(c.call("INFO").decode())
        check("told", told["client_query_buffer_limit_disconnections"], "1")
        assert q.logged("exceed " + limit)
        most = int(told["client_recent_max_input_buffer"])
        assert 15 << 20 < most <= 24 << 20, most
        for x in half:
            x.send(b"y" * (1 << 20) + b"\r\n")
        check("done", [x.reply() for x in half], [b"OK"] * len(half))


FULL = "ERR max number of clients reached"


def joined(q, at):
    """A connection to that replica's own port, or (None) to the common one,
    and its first reply."""
    c = q.client(at)
    try:
        c.send(c.encode("PING"))
        told = c.reply()
    except OSError as e:
        told = e
    return c, told


def taken(q, at):
    """A client that is served there: one that has just closed its connection
    may still count briefly."""
    kept = []

    def served():
        c, told = joined(q, at)
        kept.append(c)
        return told == b"PONG"
    wait_until("a client is taken", served)
    return kept[-1]


def test_maxclients_is_a_bound_of_the_whole_server():
    """All connections at one replica; then at the others, after its death."""
    with Quoind(PATH, args=["--maxclients", "9"]) as q:
        clients = [taken(q, 0) for _ in range(9)]
        for at in 0, 1, 2, None:
            check("one more at %s" % at, str(joined(q, at)[1]), FULL)
        os.kill(q.pids()[1], signal.SIGSTOP)  # living replicas count
        check("one more", str(joined(q, 2)[1]), FULL)
        os.kill(q.pids()[1], signal.SIGCONT)
        told = parsed(clients[0].call("INFO", "stats").decode())
        assert int(told["rejected_connections"]) >= 5, told
        clients.pop().close()
        wait_until("room again", lambda: joined(q, 1)[1] == b"PONG")
        os.kill(q.pids()[0], signal.SIGKILL)
        for c in clients:
            check("gone", closed(c), True)
        clients = [taken(q, 1 + i % 2) for i in range(9)]
        check("one more", str(joined(q, 1)[1]), FULL)


def own_address():
    """An address of this machine that is not loopback; None if there is none.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # nothing is sent
            return s.getsockname()[0]
        except OSError:
            return None


class RemoteClient(Client):
    def __init__(self, host, port):
        self.sock = socket.create_connection((host, port), DEADLINE)
        self.buf = b""


def test_protected_mode_refuses_who_is_not_local():
    host = own_address()
    if host is None:
        return "not run: no address but loopback"
    name = "protected-mode"
    with Quoind(PATH, args=["--bind", "0.0.0.0"]) as q:
        assert q.logged("until CONFIG SET protected-mode no")
        local = q.client(0)
        check("get", local.call("CONFIG", "GET", name),
              [name.encode(), b"yes"])
        for port in q.port, q.port + 1, q.port + 2:
            c = RemoteClient(host, port)
            told = str(c.reply())
            check("remote", told.split()[0], "DENIED")
            check("says what to do", "CONFIG SET protected-mode no" in told,
                  True)
            check("closed", closed(c), True)
        check("set", local.call("CONFIG", "SET", name, "no"), b"OK")
        c = RemoteClient(host, q.port + 1)
        check("remote", c.call("SET", "k", "v"), b"OK")
        check("set", c.call("CONFIG", "SET", name, "yes"), b"OK")
        check("stays", c.call("GET", "k"), b"v")
    with Quoind(PATH, args=["--bind", "0.0.0.0", "--" + name, "no"]) as q:
        assert q.logged("can read and write everything")
        check("remote", RemoteClient(host, q.port).call("PING"), b"PONG")


class Beginning(Quoind):
    """A quoind of which one replica is stopped before it is ready."""

    def __init__(self, victim):
        super().__init__(PATH)
        self.victim = victim

    def is_ready(self):
        return b"\n" in os.pread(self.ready.fileno(), 1 << 16, 0)

    def start(self):
        """The pid of the victim; None if it was ready too soon."""
        self.errors = self.open_log()
        self.ready = tempfile.TemporaryFile()
        self.proc = subprocess.Popen(self.cmd, stderr=self.errors,
                                     stdout=self.ready,
                                     preexec_fn=end_with_parent)
        pid = None
        while pid is None:
            pid = pids_of(self).get(self.victim)
        os.kill(pid, signal.SIGSTOP)
        end = time.monotonic() + 0.3
        while time.monotonic() < end and not self.is_ready():
            time.sleep(0.01)
        return None if self.is_ready() else pid

    def __enter__(self):
        while True:
            self.pid = self.start()
            if self.pid is not None:
                return self
            self.__exit__(None, None, None)
            super().__init__(PATH)


def test_nothing_is_answered_before_the_group_can_keep_it():
    """One of three is not ready yet: the others get requests at all ports."""
    for victim in 0, 1, 2:
        with Beginning(victim) as q:
            asked = [q.client(i) for i in (0, 1, 2, None, None, None, None)]
            for i, c in enumerate(asked):
                c.send(c.encode("SET", "k%d" % i, "v"))
            time.sleep(0.3)  # enough time for an answer
            for c in asked:
                assert c.silent(), "answered before the group is there"
            check("ready", q.is_ready(), False)
            os.kill(q.pid, signal.SIGCONT)
            for c in asked:
                check("set", c.reply(), b"OK")
            wait_until("ready", q.is_ready)
            agree(q)


def test_who_ends_before_that_ends_the_start_and_loses_nothing():
    with Beginning(1) as q:
        asked = [q.client(i) for i in (0, None)]
        for c in asked:
            c.send(c.encode("SET", "k", "v"))
        os.kill(q.pid, signal.SIGKILL)
        check("status", q.proc.wait(DEADLINE), 2)
        for c in asked:
            check("closed", closed(c), True)


def test_what_is_answered_first_survives_a_death():
    """The replica that gives the first answer is killed immediately."""
    for victim in 0, 1, 2, 0, 1, 2:
        q = Quoind(PATH)
        q.errors = q.open_log()
        q.ready = tempfile.TemporaryFile()
        q.proc = subprocess.Popen(q.cmd, stderr=q.errors, stdout=q.ready,
                                  preexec_fn=end_with_parent)
        try:
            c = None
            while c is None:
                try:
                    c = q.client(victim)
                except OSError:
                    pass
            check("set", c.call("SET", "k", "v"), b"OK")
            os.kill(pids_of(q)[victim], signal.SIGKILL)
            other = q.client((victim + 1) % 3)
            check("get", other.call("GET", "k"), b"v")
            check("set", other.call("SET", "k", "w"), b"OK")
            assert q.logged("was ended")
            check("lives", q.proc.poll(), None)
        finally:
            q.__exit__(None, None, None)
        check("status", q.status, 0)


main(sys.argv[3:], globals())
