"""A quoind for tests: started on free ports, always ended.

    with Quoind(path, replicas=3) as q:
        c = q.client(0)            # a connection to replica 0's own port
        c.call("SET", "a", "1")    # -> b"OK" / value / int / list / Error

Only the standard library; replies are RESP2. Deadlines only end a hang and are
long, so that a slow machine fails no test.
"""
import ctypes
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

from tests.process.lib.ports import Ports

DEADLINE = 60.0  # seconds


class Error(Exception):
    """An error reply."""


class Client:
    def __init__(self, port, timeout=DEADLINE):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buf = b""

    def close(self):
        self.sock.close()

    @staticmethod
    def encode(*args):
        out = [b"*%d\r\n" % len(args)]
        for a in args:
            if isinstance(a, int):
                a = str(a)
            if isinstance(a, str):
                a = a.encode()
            out.append(b"$%d\r\n%s\r\n" % (len(a), a))
        return b"".join(out)

    def send(self, data):
        self.sock.sendall(data)

    def _line(self):
        while b"\r\n" not in self.buf:
            self._more()
        line, self.buf = self.buf.split(b"\r\n", 1)
        return line

    def _more(self):
        data = self.sock.recv(65536)
        if not data:
            raise ConnectionError("connection closed by the server")
        self.buf += data

    def reply(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest
        if kind == b"-":
            return Error(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            n = int(rest)
            if n < 0:
                return None
            while len(self.buf) < n + 2:
                self._more()
            value, self.buf = self.buf[:n], self.buf[n + 2:]
            return value
        if kind == b"*":
            n = int(rest)
            return None if n < 0 else [self.reply() for _ in range(n)]
        raise ValueError("unknown reply %r" % line)

    def lines(self, count):
        """That many lines, as they are."""
        parts = [self.buf]
        have = self.buf.count(b"\n")
        while have < count:
            self.buf = b""
            self._more()
            have += self.buf.count(b"\n")
            parts.append(self.buf)
        *lines, self.buf = b"".join(parts).split(b"\r\n", count)
        return lines

    def call(self, *args):
        self.send(self.encode(*args))
        return self.reply()

    def pipeline(self, *commands):
        self.send(b"".join(self.encode(*c) for c in commands))
        return [self.reply() for _ in commands]

    def silent(self):
        """True if no byte has come."""
        if self.buf:
            return False
        self.sock.setblocking(False)
        try:
            self._more()
            return False
        except BlockingIOError:
            return True
        finally:
            self.sock.settimeout(DEADLINE)


def end_with_parent():
    """In the child: request SIGTERM when the test is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Quoind:
    def __init__(self, path, replicas=3, args=(), group=False, seats=0):
        self.replicas = replicas
        if seats > 0:
            args = ["--replicas-max", str(seats), *args]
        self.group = group  # True: a process group of its own
        self.ports = Ports(1 + max(replicas, seats))
        self.port = self.ports.first
        self.cmd = [path, "--port", str(self.port), "--replicas",
                    str(replicas), "--enable-debug-command",
                    "--commit-timeout", "0",  # a slow machine
                    *os.environ.get("QN_TEST_OPTIONS", "").split(), *args]
        self.drains = True  # False: writes wait for ever, so end it at once

    def __enter__(self):
        self.errors = self.open_log()
        self.ready = tempfile.TemporaryFile()
        self.proc = subprocess.Popen(self.cmd, stderr=self.errors,
                                     stdout=self.ready,
                                     start_new_session=self.group,
                                     preexec_fn=end_with_parent)
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                c = self.client()
                # Connections are accepted after the line of readiness, which
                # may still be unread in stdout at this point.
                if c.call("PING") == b"PONG" and c.call("DBSIZE") == 0 and \
                        b"\n" in os.pread(self.ready.fileno(), 1 << 16, 0):
                    c.close()
                    break
                c.close()
            except OSError:
                pass
            if self.proc.poll() is not None or time.monotonic() > deadline:
                self.proc.kill()
                raise RuntimeError("quoind did not start: %s" %
                                   self._read_log())
            time.sleep(0.01)
        return self

    def open_log(self):
        # A file, not a pipe: it is read only at the end.
        return tempfile.TemporaryFile()

    def __exit__(self, *exc):
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.proc.send_signal(signal.SIGTERM)
        try:
            if not self.drains or exc[0] is not None:
                self.second_signal()  # report a failure without waiting
            self.status = self.proc.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            for pid in self.pids():
                os.kill(pid, signal.SIGKILL)
            self.proc.kill()
            self.status = self.proc.wait()
            raise RuntimeError("quoind did not drain within %g s" % DEADLINE)
        finally:
            self.log = self._read_log()
            self.ports.close()
        if "Sanitizer" in self.log or "runtime error" in self.log:
            raise RuntimeError("a sanitizer complained:\n" + self.log)
        return False

    def second_signal(self):
        """After the first one was received: two at the same time count as one.
        """
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            if "draining" in self.log_so_far():
                break
            time.sleep(0.001)
        self.proc.send_signal(signal.SIGTERM)

    def log_so_far(self):
        self.errors.flush()
        log = os.pread(self.errors.fileno(), 1 << 20, 0)
        return log.decode(errors="replace")

    def logged(self, words):
        """The lines of the log with these words, once there is one: a thread
        writes it, so it may come after a reply."""
        deadline = time.monotonic() + DEADLINE
        while words not in self.log_so_far():
            assert time.monotonic() < deadline, "never logged: " + words
            time.sleep(0.001)
        return [x for x in self.log_so_far().splitlines() if words in x]

    def _read_log(self):
        with self.errors as f:
            f.seek(0)
            return f.read().decode(errors="replace")

    def pids(self):
        """Process ids of the replicas, by node."""
        found = {}
        if self.proc.poll() is not None:
            return []
        path = "/proc/%d/task/%d/children" % (self.proc.pid, self.proc.pid)
        with open(path) as f:
            for pid in f.read().split():
                try:
                    with open("/proc/%s/comm" % pid) as comm:
                        m = re.search(r"(\d+)$", comm.read().strip())
                except OSError:
                    continue  # it has just ended
                if m:
                    found[int(m.group(1))] = int(pid)
        return [found[i] for i in sorted(found)]

    def to(self, replicas=None):
        """Options for quoin: the ports of these replicas, or of all."""
        return [a for i in (range(self.replicas) if replicas is None
                            else replicas)
                for a in ("--to", "127.0.0.1:%d" % (self.port + 1 + i))]

    def client(self, replica=None):
        return Client(self.port if replica is None
                      else self.port + 1 + replica)
