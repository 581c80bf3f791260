"""Start a RESP server on a free port, and end it again.

A server is a redis-server or a quoind; any other program is treated as a
quoind. It runs in an empty folder and a process group of its own. It is ended
by its process id with SIGTERM; if it does not end, or leaves processes behind,
that is an error, and the group gets SIGKILL.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from wire import Closed, Connection

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../../.."))
from tests.process.lib.ports import Ports  # noqa: E402

START_S = 20
STOP_S = 20
TRIES = 5


class Server:
    """`addresses`: the server's own first, then one per replica."""

    def __init__(self, path, replicas=3, options=()):
        self.path = path
        self.is_redis = "redis" in os.path.basename(path)
        self.replicas = 0 if self.is_redis else replicas
        self.options = list(options)
        self.process = None
        self.folder = None
        self.addresses = []

    @property
    def name(self):
        return "redis" if self.is_redis else "quoind"

    @property
    def address(self):
        return self.addresses[0]

    def __enter__(self):
        for attempt in range(TRIES):
            if self._start():
                return self
            self._remove()
            if attempt == TRIES - 1:
                raise RuntimeError(f"{self.path} does not start:\n{self.log()}")
        return self

    def _command(self, port):
        if self.is_redis:
            return [self.path, "--port", str(port), "--bind", "127.0.0.1",
                    "--save", "", "--appendonly", "no",
                    "--proto-max-bulk-len", "64mb", *self.options]
        return [self.path, "--port", str(port),
                "--replicas", str(self.replicas),
                "--maxmemory", "0",  # as Redis is by default
                "--commit-timeout", "0", *self.options]  # a slow machine

    def _start(self):
        count = 1 + (self.replicas if self.replicas > 1 else 0)
        self.ports = Ports(count)
        port = self.ports.first
        self.addresses = [("127.0.0.1", port + i) for i in range(count)]
        self.folder = tempfile.mkdtemp(prefix="compat-")
        self.output = open(os.path.join(self.folder, "log"), "w+b")
        self.process = subprocess.Popen(
            self._command(port), cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=self.output, stderr=subprocess.STDOUT,
            start_new_session=True)
        deadline = time.monotonic() + START_S
        for address in self.addresses:
            while not self._answers(address):
                if (self.process.poll() is not None
                        or time.monotonic() > deadline):
                    self._end()
                    self.last_log = self.log()
                    return False
                time.sleep(0.01)
        return True

    @staticmethod
    def _answers(address):
        try:
            with Connection(address) as c:
                return c.command("PING") == b"+PONG\r\n"
        except (OSError, Closed):
            return False

    def log(self):
        if self.folder is None:
            return getattr(self, "last_log", "")
        with open(os.path.join(self.folder, "log"), "rb") as f:
            return f.read().decode(errors="replace")[-4000:]

    def _kill_group(self):
        """@return True if any process remained."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    def _end(self):
        """@return what was wrong with its end, or None."""
        if self.process.poll() is not None:
            self._kill_group()
            return f"it had ended by itself, status {self.process.returncode}"
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._kill_group()
            self.process.wait()
            return f"it was still there {STOP_S} s after SIGTERM"
        if self._kill_group():
            return "it left processes behind"
        if "Sanitizer" in self.log():
            return "a sanitizer complained"
        return None if code == 0 else f"status {code} after SIGTERM"

    def _remove(self):
        self.ports.close()
        self.output.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = None

    def __exit__(self, kind, *_):
        wrong = self._end()
        log = self.log()
        self._remove()
        if wrong:
            text = f"{self.path}: {wrong}; its last words:\n{log}"
            if kind is None:
                raise AssertionError(text)
            print(text)

    def check_alive(self):
        """It answers on every address, and has not ended."""
        if self.process.poll() is not None:
            raise AssertionError(f"{self.path} ended:\n{self.log()}")
        for address in self.addresses:
            assert self._answers(address), f"no PONG on port {address[1]}"
