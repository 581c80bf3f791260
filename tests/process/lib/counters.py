"""Writers that count every answer, at replicas that may die."""
import threading

from tests.process.lib.checks import Background, wait_until


AHEAD = 500  # so that a kill after `progress` meets full load


class Counter:
    """Increments at one replica, each sent after the answer to the one before;
    but, AHEAD more than a test has waited for, one a millisecond: what the test
    waits for then takes what the load leaves of the cores.
    Acknowledged increments are never lost, and at most one unacknowledged one
    is applied."""

    def __init__(self, q, replica):
        self.q, self.replica = q, replica
        self.key = "counter%d" % replica
        self.done = 0
        self.goal = 0
        self.unknown = 0  # in flight when a connection broke
        self.stop = threading.Event()

    def run(self):
        c = None
        while not self.stop.is_set():
            try:
                c = c or self.q.client(self.replica)
                got = c.call("INCR", self.key)
            except OSError:
                self.unknown += c is not None
                c = None
                self.stop.wait(0.002)  # refused: no busy loop
                continue
            if isinstance(got, Exception):
                assert str(got).startswith("LOADING"), "%s: %s" % (
                    self.key, got)
                continue
            assert self.done < got <= self.done + 1 + self.unknown, \
                "%s: %d after %d and %d unknown" % (
                    self.key, got, self.done, self.unknown)
            self.unknown -= got - self.done - 1
            self.done = got
            if got >= self.goal + AHEAD:
                self.stop.wait(0.001)
        if c is not None:
            c.close()

    def progress(self, count=200):
        """Waits until this many more are acknowledged."""
        self.goal = goal = self.done + count
        wait_until("%s continues" % self.key, lambda: self.done >= goal or
                   not self.thread.is_alive())
        if not self.thread.is_alive():
            self.thread.finish()
        assert self.done >= goal, "%s: expected %d or more, ended at %d" % (
            self.key, goal, self.done)


class Counters:
    """One writer at each replica while the block runs; then all is counted."""

    def __init__(self, q, replicas=None):
        self.q = q
        self.all = [Counter(q, i) for i in
                    (range(q.replicas) if replicas is None else replicas)]

    def __enter__(self):
        for c in self.all:
            c.thread = Background(c.run)
            c.thread.start()
        self.progress()
        return self

    def progress(self, but=(), count=200):
        for c in self.all:
            if c.replica not in but:
                c.progress(count)

    def __exit__(self, *exc):
        for c in self.all:
            c.stop.set()
        for c in self.all:
            c.thread.join()
        if exc[0] is not None:
            return False
        for c in self.all:
            c.thread.finish()
        at = self.q.client(self.all[0].replica)
        for c in self.all:
            value = int(at.call("GET", c.key))
            assert c.done <= value <= c.done + c.unknown, \
                "%s is %d, %d were acknowledged, %d unknown" % (
                    c.key, value, c.done, c.unknown)
        at.close()
        return False
