"""Servers that a benchmark starts: processes, ports, CPU time, memory.

CPU is that of all processes of a server. Memory is their proportional share
(Pss): memory that several processes map counts once.

A server ends with the script that started it.
"""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))
from tests.process.lib.ports import Ports  # noqa: E402

REPLICAS = 3


# ---- processes ----

def process_tree(root):
    """The process `root` and its descendants."""
    parent_of = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    after_name = f.read().rpartition(")")[2].split()
                parent_of[int(name)] = int(after_name[1])
            except OSError:
                pass  # it has ended meanwhile
    tree = [root]
    for pid in tree:  # grows while it is walked
        tree += [p for p, parent in parent_of.items() if parent == pid]
    return tree


def cpu_seconds(pids):
    return sum(time.clock_gettime(process_clock(pid)) for pid in pids)


def process_clock(pid):
    """The clock id of a process's CPU time (see clock_getcpuclockid)."""
    return (~pid << 3) | 2


def memory_bytes(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            total += int(re.search(r"^Pss:\s+(\d+) kB", f.read(), re.M)[1])
    return total * 1024


def resident(pid):
    """The memory of a process, bytes: its own, and shared."""
    with open(f"/proc/{pid}/status") as f:
        text = f.read()
    return {name: int(re.search(rf"^{field}:\s+(\d+) kB", text, re.M)[1]) * 1024
            for name, field in (("anon", "RssAnon"), ("shmem", "RssShmem"))}


def end_with_parent():
    """In the child: request SIGTERM if this script is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


# ---- servers ----

class Server:
    """A server process and its children; `command` gets a free port."""

    def __init__(self, name, command):
        self.name = name
        self.command = command
        self.process = None

    def start(self):
        """@return seconds until the first PONG."""
        self.dir = tempfile.mkdtemp(prefix="qn-bench-")
        self.ports = Ports(1 + REPLICAS)
        self.port = self.ports.first
        self.log = open(os.path.join(self.dir, "log"), "w+")
        began = time.monotonic()
        self.process = subprocess.Popen(
            self.command(self.port), stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=subprocess.STDOUT, cwd=self.dir, start_new_session=True,
            preexec_fn=end_with_parent)
        while not self.answers():
            if self.process.poll() is not None:
                self.log.seek(0)
                sys.exit(f"{self.name} ended at once:\n{self.log.read()}")
            if time.monotonic() - began > 20:
                sys.exit(f"{self.name} does not answer")
            time.sleep(0.001)
        return time.monotonic() - began

    def answers(self):
        try:
            return self.ask("PING").startswith("+PONG")
        except OSError:
            return False

    def ask(self, line, port=None, timeout=5):
        with socket.create_connection(("127.0.0.1", port or self.port),
                                      timeout=timeout) as s:
            s.sendall(line.encode() + b"\r\n")
            return s.recv(65536).decode()

    def info(self, port=None):
        """INFO, a dict of texts."""
        with socket.create_connection(("127.0.0.1", port or self.port),
                                      timeout=60) as s:
            s.sendall(b"INFO\r\n")
            with s.makefile("rb") as f:
                size = int(f.readline()[1:])
                text = f.read(size).decode()
        return dict(line.split(":", 1) for line in text.splitlines()
                    if ":" in line)

    def weigh(self):
        """For each process with data: resident memory, and the use that it
        reports itself."""
        info = self.info()
        if "replica0" not in info:
            return [dict(resident(int(info["process_id"])),
                         used=int(info["used_memory"]))]
        found = []
        for i in range(REPLICAS):
            try:
                said = dict(pair.split("=", 1)
                            for pair in info[f"replica{i}"].split(","))
                found.append(dict(resident(int(said["pid"])),
                                  used=int(said["used_memory"])))
            except (KeyError, OSError):
                pass  # it has ended, is being restarted, or did not answer
        return found

    def pids(self):
        return process_tree(self.process.pid)

    def catch_up(self, i):
        """@return seconds until replica i answers a linearizable read: then it
        has applied what was decided when it was asked."""
        began = time.monotonic()
        self.ask("GET absent", self.port + 1 + i, timeout=60)
        return time.monotonic() - began

    def replica_pid(self, i):
        """Process of replica i: its own port is port + 1 + i."""
        info = self.ask("INFO server", self.port + 1 + i)
        return int(re.search(r"process_id:(\d+)", info)[1])

    def stop(self):
        if self.process is None:
            return
        pids = self.pids()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            for pid in pids:  # killed first, children would be restarted
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()
        self.process = None
        self.ports.close()
        self.log.close()
        shutil.rmtree(self.dir)


def redis(name="redis"):
    return Server(name, lambda port: [
        "redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save",
        "", "--appendonly", "no"])


def quoind(path):
    if path == "redis":
        return redis("redis too")
    path = os.path.abspath(path)
    return Server("quoind", lambda port: [
        path, "--port", str(port), "--replicas", str(REPLICAS)])
