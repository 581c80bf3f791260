"""Every order of killing the supervisor and replicas that leaves one alive: no
acknowledged write is lost, none is applied twice, and after a new quoind all
are complete and equal. Increments continue at every replica throughout.

Usage: test_orders.py QUOIND QUOIN [--all] [NAME...]

An order is a word: s is the supervisor, l the leader at that moment, o another
replica. No process is killed twice in its first incarnation; with --restart
yes victims may have restarted, or be restarting, when the next one dies.

--all  each order with --restart no and yes, and every choice of "another"; else
       each once, with --restart no and yes by turns

QN_TEST_ORDERS_STEP=N  only every N-th (1)
"""
import itertools
import os
import sys
import time

from tests.process.cluster.adoption import (complete, kill_replicas, kill_supervisor, launch,
                      pids_of)
from tests.process.lib.checks import agree, check, main, shares, wait_until
from tests.process.lib.counters import Counters
from tests.process.lib.quoind import Quoind
from tests.process.lib.info_view import look

PATH = sys.argv[1]
ALL = "--all" in sys.argv
STEP = int(os.environ.get("QN_TEST_ORDERS_STEP", "1"))
KEYS = 500


def words():
    """All orders with the supervisor and up to two of three replicas."""
    for count in range(3):
        for who in itertools.product("lo", repeat=count):
            for at in range(count + 1):
                yield "".join(who[:at]) + "s" + "".join(who[at:])


def victim(q, letter, alive, choice):
    """The replica that the letter means now, among those that have not been
    killed. If the leader is a former victim, another replica is chosen."""
    found = []

    def led():
        v = look(q, alive)
        if v is None or v.leader not in pids_of(q):
            return False
        found[:] = [i for i in alive if (i == v.leader) == (letter == "l")]
        return True
    wait_until("there is a leader", led)
    found = found or alive
    return found[choice % len(found)]


def keys_at(q, replica):
    c = q.client(replica)
    check("keys at %d" % replica, c.pipeline(
        *[("GET", "key%d" % i) for i in range(KEYS)]),
        [b"%d" % i for i in range(KEYS)])
    c.close()


def kept_at(q, replica, load, sure):
    """A survivor alone has the writes acknowledged before."""
    c = q.client(replica)
    for counter, done in zip(load.all, sure):
        got = int(c.call("GET", counter.key))
        assert done <= got, "%s is %d at %d, %d were acknowledged" % (
            counter.key, got, replica, done)
    c.close()


def kill_in_order(q, word, load, choice):
    """@return those that were not killed."""
    alive = list(range(q.replicas))
    for letter in word:
        if letter == "s":
            kill_supervisor(q)
        else:
            dying = victim(q, letter, alive, choice)
            kill_replicas(q, dying)
            alive.remove(dying)
        sure = [c.done for c in load.all]
        if len(alive) > 1:  # they continue without help
            load.progress(but=set(range(q.replicas)) - set(alive), count=20)
        for i in alive:
            kept_at(q, i, load, sure)
    return alive


def take_over(q, alive, exact):
    """@return s from the start of the new quoind to its line of readiness."""
    began = time.monotonic()
    q.proc = launch(q, "--restart", "yes")
    wait_until("it is ready", lambda: q.proc.poll() is not None or
               b"\n" in os.pread(q.ready.fileno(), 1 << 16, 0))
    took = time.monotonic() - began
    line = os.pread(q.ready.fileno(), 1 << 16, 0)
    assert b"adopted " in line, line
    if exact:
        assert b"adopted %d replica" % len(alive) in line, line
    return took


def run(word, restart, choice):
    with Quoind(PATH, args=["--restart", restart]) as q:
        c = q.client(0)
        check("fill", set(c.pipeline(*[("SET", "key%d" % i, i)
                                       for i in range(KEYS)])), {b"OK"})
        c.close()
        with Counters(q) as load:
            alive = kill_in_order(q, word, load, choice)
            took = take_over(q, alive, restart == "no" or word[0] == "s")
            complete(q)
            load.progress(count=20)
        for i in range(q.replicas):
            keys_at(q, i)
            kept_at(q, i, load, [c.done for c in load.all])
        shares(q)
        agree(q)
    check("drained", q.status, 0)
    return took


def chosen():
    """(word, --restart, which other)."""
    for i, word in list(enumerate(words()))[::STEP]:
        for k, restart in enumerate(("no", "yes")):
            if ALL:
                # Without a supervisor nothing is started again.
                if k == 0 or word[0] != "s":
                    for choice in range(2 if "o" in word else 1):
                        yield word, restart, choice
            elif i % 2 == k:
                yield word, restart, i // 2


def test_every_order_of_deaths():
    times = []
    for word, restart, choice in chosen():
        try:
            times.append(run(word, restart, choice))
        except Exception as e:
            raise AssertionError("order %s, --restart %s, choice %d: %s: %s" % (
                word, restart, choice, type(e).__name__, e)) from e
    times.sort()
    return "%d orders, take-over %.0f ms in the median, %.0f at most" % (
        len(times), 1e3 * times[len(times) // 2], 1e3 * times[-1])


if __name__ == "__main__":
    main([a for a in sys.argv[3:] if a != "--all"], dict(globals()))
