"""A server under heavy load for manual tests: `quoin load` with large values,
the INFO of each replica ten times a second, memory from /proc, markers with
every acknowledgement recorded.

`o` are the options of `parser`: quoin, value_size, keys, connections, pipeline.
"""
import collections
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time

from tests.process.lib import script
from tests.process.lib.quoind import Client, Error
from tests.process.lib.info_view import fields, look, parsed, pids_of

MIB = 1 << 20
PATIENCE = 60.0   # s; it ends a hang
LOOK_S = 0.1      # between two samples
ANSWER_S = 5.0    # an INFO that takes longer counts as unanswered


def parser(text, seconds):
    """Options common to all these scripts."""
    p = script.parser(text)
    p.add_argument("--acceptor", choices=("memory", "process"), default="memory")
    p.add_argument("--seconds", type=float, default=seconds)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--value-size", default="64ki")
    p.add_argument("--keys", type=int, default=1000)
    p.add_argument("--connections", type=int, default=50)
    p.add_argument("--pipeline", type=int, default=16)
    p.add_argument("--json", metavar="FILE", help="write the results there")
    p.add_argument("--quick", action="store_true",
                   help="a light load for a second, no timing verdict")
    p.add_argument("args", nargs="*", metavar="OPTION",
                   help="of quoind, behind --")
    return p


def options(p):
    o = script.options(p)
    if o.quick:
        o.seconds, o.value_size, o.keys = 1.0, "4ki", 100
        o.connections, o.pipeline = 8, 2
    return o


def wait_for(what, true, process=None):
    """@return the seconds until it was true."""
    began = time.monotonic()
    while not true():
        if process is not None and process.poll() is not None:
            raise RuntimeError("%s: the server has ended" % what)
        if time.monotonic() > began + PATIENCE:
            raise RuntimeError("not within %g s: %s" % (PATIENCE, what))
        time.sleep(0.005)
    return time.monotonic() - began


def send(pid, number):
    """@return False if it has ended."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Starver(threading.Thread):
    """A process runs `runs` s in each `every`."""

    def __init__(self, pid, every=1.0, runs=0.01):
        super().__init__(daemon=True)
        self.pid, self.every, self.runs = pid, every, runs
        self.stop = threading.Event()

    def run(self):
        while not self.stop.is_set():
            send(self.pid, signal.SIGSTOP)
            self.stop.wait(self.every - self.runs)
            send(self.pid, signal.SIGCONT)
            time.sleep(self.runs)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop.set()
        self.join()


# ---- load ----

class Load:
    """`quoin load` that writes, in the background; a record every `step` s."""

    def __init__(self, q, o, to=None, step=1.0, mix="set", prefix=()):
        self.out = tempfile.TemporaryFile("w+")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [*prefix, o.quoin, "load", *q.to(to), "--json", "--mix", mix,
             "--keys", str(o.keys), "--value-size", o.value_size,
             "--connections", str(o.connections),
             "--pipeline", str(o.pipeline), "--warmup", "0",
             "--seconds", "100000", "--interval", str(step)],
            stdout=self.out, stderr=subprocess.PIPE, text=True)

    def records(self):
        """The records so far: at, seconds, ops, errors, ..."""
        size = os.fstat(self.out.fileno()).st_size
        text = os.pread(self.out.fileno(), size, 0).decode()
        return [json.loads(line) for line in text.splitlines(True)
                if line.endswith("\n")]

    def begun(self):
        def one():
            if self.process.poll() is not None:
                raise RuntimeError("quoin load: " + self.process.stderr.read())
            return len(self.records()) > 0
        wait_for("quoin load begins", one)
        return self

    def rate(self, begin, end):
        """Operations per second between two times of the monotonic clock."""
        inside = [s for s in self.records()
                  if begin <= self.began + s["at"] <= end]
        seconds = sum(s["seconds"] for s in inside)
        return sum(s["ops"] for s in inside) / seconds if seconds else 0.0

    def end(self):
        """@return the summary, with its exit status."""
        self.process.send_signal(signal.SIGINT)
        _, text = self.process.communicate()
        records = self.records()
        self.out.close()
        if not records or "unavailability" not in records[-1]:
            raise RuntimeError("quoin load: status %d: %s" % (
                self.process.returncode, text))
        return records[-1]

    def __enter__(self):
        return self.begun()

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()


def percentile(summary, name):
    """The p50 of all writes, in ms."""
    return summary["latency_us"][name] / 1000


def unavailable_ms(summary, kind="writes"):
    """The longest time without an answer to a write at any address."""
    return max((s["longest_ms"] for s in summary["unavailability"]
                if s["kind"] == kind and s["to"] == "all"), default=0.0)


def fill(q, o, megabytes):
    """Stores this much in values of --value-size; @return the keys."""
    each = int(o.value_size.replace("ki", "")) * 1024
    value = b"x" * each
    count = megabytes * MIB // each
    c = q.client(0)
    for first in range(0, count, 16):
        c.pipeline(*[("SET", "fill:%d" % i, value)
                     for i in range(first, min(first + 16, count))])
    c.close()
    return count


# ---- observations ----

def rss(pid):
    """{"RssAnon": bytes, "RssShmem": bytes} of a process."""
    with open("/proc/%d/status" % pid) as f:
        return {name: int(kb) * 1024 for name, kb in
                re.findall(r"^(RssAnon|RssShmem):\s+(\d+) kB", f.read(), re.M)}


def awaited(lines, replicas):
    """The leader and the followers that it waits for, as one replica reports
    it."""
    told = lines.get("awaited", "") + "," + lines.get("leader", "")
    return {int(n) for n in told.split(",") if n.strip().isdigit()} & set(
        range(replicas))


class Looks(threading.Thread):
    """Samples each replica ten times a second, until `end`. A new leader, which
    there may be on a busy machine, waits for no other before it has heard of the
    others: so what two samples in a row say of a replica counts."""

    def __init__(self, q):
        super().__init__(daemon=True)
        self.q = q
        self.stop = threading.Event()
        self.count = self.unanswered = self.absent = 0
        self.missed = collections.Counter()  # replica: samples without it
        self.most = {"RssAnon": 0, "RssShmem": 0}
        self.over = {"RssAnon": 0, "RssShmem": 0}  # above the limit, bytes
        self.clients = {}
        self.before = {}  # replica: those that its last sample missed

    def run(self):
        while not self.stop.wait(LOOK_S):
            for i, pid in pids_of(self.q).items():
                self.look(i, pid)
            self.count += 1

    def ask(self, i):
        try:
            if i not in self.clients:
                self.clients[i] = Client(self.q.port + 1 + i, timeout=ANSWER_S)
            got = self.clients[i].call("INFO", "quoin")
        except OSError:
            self.clients.pop(i, None)
            return None
        return None if isinstance(got, Error) else parsed(got.decode())

    def look(self, i, pid):
        lines = self.ask(i)
        if lines is None:
            self.unanswered += 1
            return
        without = set(range(self.q.replicas)) - \
            awaited(lines, self.q.replicas)
        missing = without & self.before.get(i, set())
        self.before[i] = without
        self.missed.update(missing)
        self.absent += bool(missing)
        try:
            self.memory(rss(pid), fields(lines, i), lines)
        except (OSError, ValueError):
            pass  # no longer reports itself

    def memory(self, now, own, lines):
        used = int(own.get("used_memory", 0))
        # The leader reads from the arenas of all: the largest counts.
        arena = max(map(int, re.findall(r"arena_bytes_most=(\d+)",
                                        " ".join(lines.values()))), default=0)
        bars = {"RssAnon": used * 5 // 4 + 128 * MIB,
                "RssShmem": 320 * MIB + arena}
        for name, bar in bars.items():
            self.most[name] = max(self.most[name], now[name])
            self.over[name] = max(self.over[name], now[name] - bar)

    def end(self):
        self.stop.set()
        self.join()
        for c in self.clients.values():
            c.close()


def events(q, o):
    """The events of the flight recorders of all replicas, oldest first."""
    for i in range(q.replicas):
        done = subprocess.run([o.quoin, "events", "--json", *q.to([i])],
                              capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            return [json.loads(line) for line in done.stdout.splitlines()]
    return []


def snapshots(q, o):
    """The number of snapshots that were needed."""
    return sum(e["event"] == "need-snapshot" for e in events(q, o))


def log_lines(q):
    return q.log_so_far().splitlines()


# ---- markers ----

class Marker(threading.Thread):
    """Small writes at one replica, one after the other; `kept` are the
    acknowledged ones."""

    def __init__(self, q, replica, name):
        super().__init__(daemon=True)
        self.q, self.replica, self.name = q, replica, name
        self.kept = []

    def run(self):
        number = 0
        try:
            c = Client(self.q.port + 1 + self.replica, timeout=PATIENCE)
            while True:
                key = "%s:%d" % (self.name, number)
                if c.call("SET", key, number) == b"OK":
                    self.kept.append((key, b"%d" % number))
                number += 1
        except OSError:
            return  # it was killed


class Markers:
    """Several writers, until their replica dies. Another client checks the
    acknowledged writes at the end."""

    def __init__(self, q, replica, count=16):
        self.q = q
        self.kept = []
        self.all = [Marker(q, replica, "marker%d" % i) for i in range(count)]
        for m in self.all:
            m.start()

    def begun(self):
        return any(m.kept for m in self.all)

    def join(self):
        for m in self.all:
            m.join()
        self.kept = [x for m in self.all for x in m.kept]

    def missing(self, replica):
        """Acknowledged markers that are missing at that replica."""
        c = self.q.client(replica)
        lost = []
        for first in range(0, len(self.kept), 500):
            part = self.kept[first:first + 500]
            got = c.pipeline(*[("GET", key) for key, _ in part])
            for (key, want), value in zip(part, got):
                if isinstance(value, Error):
                    raise RuntimeError("GET: %s" % value)
                if value != want:
                    lost.append(key)
        c.close()
        return lost


def serves(q, replicas):
    """Each of these answers a write with OK."""
    for i in replicas:
        try:
            c = Client(q.port + 1 + i, timeout=ANSWER_S)
            try:
                if c.call("SET", "serves", i) != b"OK":
                    return False
            finally:
                c.close()
        except OSError:
            return False
    return True


def current(q):
    """All live, are online and in sync: with the process acceptor these are
    the leader and the acceptor."""
    view = look(q, range(q.replicas))
    pids = pids_of(q)
    return view is not None and len(pids) == q.replicas and \
        view.current(pids) and view.in_sync >= (
            {view.leader, view.acceptor} if view.leader != view.acceptor
            else set(range(q.replicas)))
