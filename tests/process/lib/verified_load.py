"""Checks of a server during fault injection: a ledger of the acknowledged
writes, and a load on all replicas whose answers must be linearizable.

`o` are the options of nemesis.py: quoin, keys.
"""
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from tests.process.lib.quoind import Client, Error

MIX = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


class Failure(Exception):
    """A violation by the server."""


# ---- acknowledged writes ----

class Ledger(threading.Thread):
    """Writes at one replica, one after the other: its own keys and a counter.
    Acknowledged writes must be present; the outcome of others is unknown."""

    def __init__(self, q, replica):
        super().__init__(daemon=True)
        self.q, self.replica = q, replica
        self.name = "ledger%d" % replica
        self.counted = self.unknown = self.written = 0
        self.kept = []  # numbers of acknowledged keys
        self.stop = threading.Event()
        self.wrong = None

    def run(self):
        c = None
        while not self.stop.is_set():
            try:
                c = c or Client(self.q.port + 1 + self.replica, timeout=20)
                self.write(c)
            except OSError:
                if c is not None:
                    self.unknown += self.asked
                    c.close()
                c = None
                time.sleep(0.005)
            except Failure as e:
                self.wrong = str(e)
                return
            time.sleep(0.005)
        if c is not None:
            c.close()

    def write(self, c):
        number = self.written
        self.written += 1
        self.asked = True
        key = "%s:%d" % (self.name, number)
        c.send(c.encode("SET", key, number) + c.encode("INCR", self.name))
        if c.reply() == b"OK":
            self.kept.append(number)
        got = c.reply()
        self.asked = False
        if isinstance(got, Error):
            if "unknown" in str(got):
                self.unknown += 1
        elif not self.counted < got <= self.counted + 1 + self.unknown:
            raise Failure("%s: %d after %d and %d unknown" % (
                self.name, got, self.counted, self.unknown))
        else:
            self.unknown -= got - self.counted - 1
            self.counted = got

    def check(self, c, at):
        """Checks that all of it is present at the replica to which `c` is
        connected."""
        if self.wrong:
            raise Failure(self.wrong)
        value = int(c.call("GET", self.name) or 0)
        if not self.counted <= value <= self.counted + self.unknown:
            raise Failure("%s is %d at replica %d: %d were acknowledged, %d "
                          "are unknown" % (self.name, value, at, self.counted,
                                           self.unknown))
        for first in range(0, len(self.kept), 500):
            part = self.kept[first:first + 500]
            got = c.pipeline(*[("GET", "%s:%d" % (self.name, n))
                               for n in part])
            for n, value in zip(part, got):
                if value != b"%d" % n:
                    raise Failure("%s:%d was acknowledged and is %r at "
                                  "replica %d" % (self.name, n, value, at))


# ---- the load ----

def load(q, o, *args):
    """The command of a verified load on the ports of all replicas."""
    if getattr(o, "value_size", None) is not None:
        args = ("--value-size", str(o.value_size), *args)
    return [o.quoin, "load", *q.to(), "--keys", str(o.keys), "--verify", "--json",
            "--mix", MIX, "--connections", "12", "--spread", "request", *args]


def capacity(q, o):
    """Operations per second in a closed loop."""
    done = subprocess.run(
        load(q, o, "--warmup", "0.3", "--seconds", "1"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failure("quoin load, no faults: status %d\n%s%s" % (
            done.returncode, done.stdout, done.stderr))
    return json.loads(done.stdout.splitlines()[-1])["ops_per_s"]


class VerifiedLoad:
    """`quoin load --verify` on the ports of all replicas."""

    def __init__(self, q, o, rate):
        self.out = tempfile.TemporaryFile("w+")
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            load(q, o, "--warmup", "0", "--seconds", "100000", "--rate", rate),
            stdout=self.out, stderr=subprocess.PIPE, text=True)
        while not os.fstat(self.out.fileno()).st_size:  # its first second
            time.sleep(0.05)
            if self.process.poll() is not None:
                raise Failure("quoin load does not begin: " +
                              self.process.stderr.read())

    def end(self):
        """@return the summary. `seconds`: the records of each second."""
        self.process.send_signal(signal.SIGINT)
        _, text = self.process.communicate()
        self.out.seek(0)
        lines = self.out.read().splitlines()
        if not lines:
            raise Failure("quoin load said nothing: " + text)
        *self.seconds, summary = [json.loads(line) for line in lines]
        verdict = (summary["verify"] or {}).get("verdict")
        if verdict != "linearizable" or self.process.returncode != 0:
            raise Failure("quoin load: %s, status %d\n%s" % (
                verdict, self.process.returncode, text))
        return summary

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        self.out.close()
