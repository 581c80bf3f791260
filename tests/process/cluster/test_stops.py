"""Replicas that are stopped or killed: the others continue, wait, catch up.

Usage: test_stops.py QUOIND QUOIN [NAME...]

QN_STRESS_WRITES=N  writes of test_random_writes_... (200000); 10000000 takes
                    minutes.
"""
import itertools
import os
import random
import re
import signal
import sys
import threading
import time

from tests.process.lib.checks import agree, Background, check, main, wait_until, waits
from tests.process.lib.quoind import Client, Quoind

PATH = sys.argv[1]
TIMEOUT_MS = 50  # paxos/member/detector/failure_detector.h
WRITES = int(os.environ.get("QN_STRESS_WRITES", "200000"))


def failovers(q):
    c = q.client(0)
    text = c.call("INFO", "quoin").decode()
    c.close()
    return int(re.search(r"^failovers:(\d+)", text, re.M).group(1))


def fill(q, count):
    """Known keys, written through all replicas."""
    known = [("key%d" % i, b"value%d" % i) for i in range(count)]
    for i in range(q.replicas):
        c = q.client(i)
        c.pipeline(*[("SET", k, v) for k, v in known[i::q.replicas]])
        c.close()
    return known


def check_reads(clients, known):
    for c in clients:
        check("reads", c.pipeline(*[("GET", k) for k, _ in known]),
              [v for _, v in known])
        check("read", c.call("GET", known[0][0]), known[0][1])


def ask_to_write(q, replica, value):
    """A connection whose SET was sent."""
    c = q.client(replica)
    c.send(Client.encode("SET", "waits", value))
    return c


def suspicion_timeout_ms(q):
    c = q.client(0)
    text = c.call("INFO", "quoin").decode()
    c.close()
    return int(re.search(r"suspicion_timeout_usec:(\d+)", text).group(1)) / 1000


def roles(q, asked):
    """(leader, acceptor), as that replica reports them."""
    c = q.client(asked)
    text = c.call("INFO", "quoin").decode()
    c.close()
    of = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return int(of["leader"]), int(of["acceptor"])


def test_writes_go_on_without_a_stopped_replica():
    """With any role: leader, acceptor or neither. Its own requests, single or
    in pipelines, are answered when it resumes."""
    for kind in "memory", "process":
        with Quoind(PATH, args=["--acceptor", kind]) as q:
            known = fill(q, 100)
            for round_ in range(6):
                stopped = round_ % 3
                others = [i for i in range(3) if i != stopped]
                cs = [q.client(i) for i in others]
                sets = {i: q.client(i) for i in range(3)}
                incrs = {i: q.client(i) for i in range(3)}
                os.kill(q.pids()[stopped], signal.SIGSTOP)
                for i in range(3):
                    sets[i].send(Client.encode("SET", "goes", "on"))
                    incrs[i].send(Client.encode("INCR", "n") * 50)
                counts = []
                for i in others:
                    check("set", sets[i].reply(), b"OK")
                    counts += [incrs[i].reply() for _ in range(50)]
                check_reads(cs, known)
                os.kill(q.pids()[stopped], signal.SIGCONT)
                check("after", sets[stopped].reply(), b"OK")
                counts += [incrs[stopped].reply() for _ in range(50)]
                first = 150 * round_ + 1
                check("counts", sorted(counts), list(range(first, first + 150)))
                for c in cs + [*sets.values(), *incrs.values()]:
                    c.close()
                agree(q)


def test_reads_go_on_when_leader_and_acceptor_are_killed():
    """One of three remains: it has no majority for another leader."""
    for kind in "memory", "process":
        with Quoind(PATH, args=["--acceptor", kind, "--restart", "no"]) as q:
            known = fill(q, 500)
            alive = [0, 1, 2]
            old = [q.client(i) for i in range(3)]
            pids = q.pids()
            for _ in range(2):
                dead = roles(q, alive[-1])[kind == "process"]
                alive.remove(dead)
                os.kill(pids[dead], signal.SIGKILL)
                check_reads([old[i] for i in alive], known)
                check_reads([q.client(i) for i in alive], known)
                if len(alive) == 2:
                    for i in alive:
                        check("write", q.client(i).call("SET", "x", i), b"OK")
            # Requests before a write in its pipeline are answered.
            last = q.client(alive[0])
            last.send(Client.encode("GET", known[1][0]) +
                      Client.encode("SET", "waits", "lost"))
            check("a read before a write", last.reply(), known[1][1])
            asked = [last, ask_to_write(q, alive[0], "lost")]
            waits("a write without a majority", asked, q, alive)
            check("the write is not seen", old[alive[0]].call("GET", "waits"),
                  None)
            wait_until("a new client is answered", lambda: reads(q, known))
            q.drains = False
        check("ended by the second signal", q.status, 128 + signal.SIGTERM)


def reads(q, known):
    """A connection at the common port is answered, by any replica."""
    try:
        c = q.client()
        check_reads([c], known)
        c.close()
        return True
    except OSError:  # the queue of the dead replica is being closed
        return False


def write_keys(c, count, value):
    for i in range(0, count, 500):
        got = c.pipeline(*[("SET", "key%d" % k, "%s%d" % (value, k))
                           for k in range(i, i + 500)])
        check("set", set(got), {b"OK"})


def test_stopped_learner_catches_up():
    """From a stop in which all its channels overflow; a read there waits for
    the current position."""
    with Quoind(PATH) as q:
        c = q.client(0)
        learner = q.pids()[2]
        for value in "abc":
            at_learner = q.client(2)
            os.kill(learner, signal.SIGSTOP)
            write_keys(c, 60000, value)
            at_learner.send(Client.encode("GET", "key59999"))
            os.kill(learner, signal.SIGCONT)
            check("read", at_learner.reply(), b"%s59999" % value.encode())
            agree(q)
        check("size", q.client(2).call("DBSIZE"), 60000)


def test_who_was_only_slow_makes_suspicions_come_later():
    """A leader that sleeps within an iteration is deposed, and cannot be
    distinguished from one that hangs, until it continues. (The time depends on
    other load, so the test repeats until both have happened.)"""
    with Quoind(PATH) as q:
        seconds = itertools.cycle(("0.4", "0.8", "1.2"))

        def sleep_once():
            leader, _ = roles(q, 0)
            before = failovers(q)
            asked = [q.client(i) for i in range(3)]
            asked[leader].send(Client.encode("DEBUG", "SLEEP",
                                             next(seconds)))
            for i, c in enumerate(asked):
                if i != leader:
                    check("set", c.call("SET", "goes", "on"), b"OK")
            check("slept", asked[leader].reply(), b"OK")
            for c in asked:
                c.close()
            return failovers(q) > before and "resumed; suspicion" in q.log_so_far()
        wait_until("it was deposed, and goes on", sleep_once)
        borne = [int(ms) for ms in
                 re.findall(r"timeout is now (\d+) ms", q.log_so_far())]
        check("at least doubled", min(borne) >= 2 * TIMEOUT_MS, True)
        check("INFO", suspicion_timeout_ms(q) >= min(borne), True)


def test_who_is_late_itself_suspects_later():
    """As on shared cores; here by a stop during writes."""
    with Quoind(PATH) as q:
        learner = next(i for i in range(3) if i not in roles(q, 0))
        sets = Client.encode("SET", "key", "value") * 5000
        c = q.client(learner)

        def late():
            c.send(sets)
            os.kill(q.pids()[learner], signal.SIGSTOP)
            time.sleep(0.2)
            os.kill(q.pids()[learner], signal.SIGCONT)
            for _ in range(5000):
                check("set", c.reply(), b"OK")
            return suspicion_timeout_ms(q) >= 2 * 150
        wait_until("twice as long as it was late", late)
        c.close()


def test_who_was_stopped_makes_no_suspicion_come_later():
    """The kernel reported the stop: no suspicion was wrong."""
    with Quoind(PATH) as q:
        for _ in range(2):
            leader, _ = roles(q, 0)
            pid = q.pids()[leader]
            other = q.client((leader + 1) % 3)
            os.kill(pid, signal.SIGSTOP)
            check("set", other.call("SET", "goes", "on"), b"OK")
            # a replica that only receives the news checks then
            for i in {0, 1, 2} - {leader}:
                wait_until("it is deposed", lambda: roles(q, i)[0] != leader)
            os.kill(pid, signal.SIGCONT)
            agree(q)
            other.close()
    check("false suspicions", "resumed" in q.log, False)


class Writer:
    """One connection: batches of writes whose order matters, several in
    flight. Each ends with an increment of its own counter, whose replies show
    that each batch was executed once and in order."""

    SIZE = 500  # commands of a batch
    IN_FLIGHT = 4

    def __init__(self, q, replica, name):
        self.c = q.client(replica)
        self.rng = random.Random(name)
        self.batches = [self.make(name) for _ in range(16)]
        self.done = 0

    def make(self, name):
        return b"".join([Client.encode(*self.command())
                         for _ in range(self.SIZE - 1)] +
                        [Client.encode("INCR", "own:%s" % name)])

    def command(self):
        rng = self.rng
        key = "k%d" % rng.randrange(2000)
        return rng.choice((
            ("SET", key, "v%d" % rng.getrandbits(64)), ("DEL", key),
            ("APPEND", key, "x"), ("SETRANGE", key, 5, "yy"),
            ("SET", "n%d" % rng.randrange(50), rng.randrange(100)),
            ("INCR", "n%d" % rng.randrange(50)),
            ("MSET", key, "1", key + "b", "2")))

    def take(self):
        """The replies of one batch, a line each."""
        lines = self.c.lines(self.SIZE)
        self.done += 1
        check("own counter", lines[-1], b":%d" % self.done)

    def write(self, batches):
        sent = self.done
        last = self.done + batches
        while self.done < last:
            while sent < min(last, self.done + self.IN_FLIGHT):
                self.c.send(self.rng.choice(self.batches))
                sent += 1
            self.take()


def disturb(pids, stop, rng, counts):
    """Stops one or two replicas, any, for up to 50 ms, repeatedly."""
    while not stop.is_set():
        chosen = rng.sample(pids, rng.choice((1, 1, 1, 2)))
        for pid in chosen:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(rng.random() * 0.05)
        for pid in chosen:
            os.kill(pid, signal.SIGCONT)
        counts.append(len(chosen))
        time.sleep(rng.random() * 0.05)


def test_random_writes_through_all_replicas_with_stops():
    rounds = 10
    with Quoind(PATH) as q:
        pids = q.pids()
        writers = [Writer(q, i % 3, "w%d" % i) for i in range(6)]
        batches = -(-WRITES // (rounds * len(writers) * Writer.SIZE))
        rng = random.Random(9)
        stops = []
        for _ in range(rounds):
            done = threading.Event()
            with Background(disturb, pids, done, rng, stops):
                jobs = [Background(w.write, batches) for w in writers]
                for job in jobs:
                    job.start()
                for job in jobs:
                    job.join()
                done.set()
            for job in jobs:
                job.finish()
            agree(q)
        return "%d writes, %d stops, %d digests" % (
            rounds * batches * len(writers) * Writer.SIZE, sum(stops), rounds)


main(sys.argv[3:], globals())
