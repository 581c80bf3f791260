"""CONFIG SET of the settings that do not go through the log, lag-timeout and
min-replicas-to-write: while writes are held, and with replicas that stop, end
and lead afterwards.

Usage: test_settings.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys

from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.info_view import fields, info

PATH = sys.argv[1]
VALUE = b"x" * (64 << 10)
LAG, LEAST = "lag-timeout", "min-replicas-to-write"


# "message": no replica looks into the outbox of another.
ACCEPTORS = {"memory": ["--acceptor", "memory"],
             "process": ["--acceptor", "process"],
             "message": ["--acceptor", "process", "--shared-state", "no"]}


def server(acceptor="memory", timeout_ms=200, least=1):
    return Quoind(PATH, args=[*ACCEPTORS[acceptor],
                              "--repl-backlog-size", str(8 << 20),
                              "--lag-timeout", str(timeout_ms),
                              "--min-replicas-to-write", str(least)])


def call(q, replica, *args):
    c = q.client(replica)
    try:
        return c.call(*args)
    finally:
        c.close()


def get(q, replica, name):
    return call(q, replica, "CONFIG", "GET", name)[1].decode()


def everywhere(q, name, value):
    for n in range(q.replicas):
        wait_until("replica %d goes by %s %s" % (n, name, value),
                   lambda: get(q, n, name) == value)


def online(q, replica):
    wait_until("replica %d is back" % replica, lambda:
               fields(info(q, replica), replica).get("state") == "online")


def next_life(q, replica, pid):
    def begun():
        pids = q.pids()
        return len(pids) == q.replicas and pids[replica] != pid
    wait_until("its next life", begun)


def leader_of(q, replica=0):
    return int(info(q, replica)["leader"])


def writes(q, replica, count):
    """@return a connection that has sent this many SETs, 9 MiB for 150."""
    c = Client(q.port + 1 + replica, 120)
    for i in range(count):
        c.send(Client.encode("SET", "key%d" % (i % 32), VALUE))
    return c


def held(q, leader):
    wait_until("writes are held",
               lambda: info(q, leader)["writes_held"] == "1")


def test_an_operator_lets_writes_go_on_without_the_stopped():
    """Both followers must keep up and one stops. The setting is sent to the
    leader, or to the other follower, which passes it to the leader; the
    stopped one receives it when it continues."""
    for acceptor, asks_leader in (("memory", True), ("memory", False),
                                  ("process", False), ("message", False)):
        with server(acceptor, least=2) as q:
            i = info(q, 0)
            leader, acceptor = int(i["leader"]), int(i["acceptor"])
            stops = [n for n in range(3) if n not in (leader, acceptor)][-1]
            other, = set(range(3)) - {leader, stops}
            pid = q.pids()[stops]
            os.kill(pid, signal.SIGSTOP)
            waits = writes(q, leader, 150)
            held(q, leader)
            check("it is answered", call(q, leader if asks_leader else other,
                                         "CONFIG", "SET", LEAST, 1), b"OK")
            wait_until("they continue",
                       lambda: info(q, leader)["writes_held"] == "0")
            replies = [waits.reply() for _ in range(150)]
            waits.close()
            assert all(r == b"OK" or str(r).startswith("NOREPLICAS")
                       for r in replies), replies
            check("a write", call(q, leader, "SET", "key", "1"), b"OK")
            for n in leader, other:
                check("CONFIG GET", get(q, n, LEAST), "1")
                check("INFO", info(q, n)["min_replicas_to_write"], "1")
            os.kill(pid, signal.SIGCONT)
            everywhere(q, LEAST, "1")
            online(q, stops)


def test_a_replica_that_is_started_again_has_it():
    """Each in turn, so that in the end no process is left that received the
    command."""
    for acceptor in "memory", "message":
        with server(acceptor) as q:
            check("set", call(q, 1, "CONFIG", "SET", LAG, 700, LEAST, 2), b"OK")
            for n in range(3):
                pid = q.pids()[n]
                os.kill(pid, signal.SIGKILL)
                next_life(q, n, pid)
                online(q, n)
                everywhere(q, LAG, "700")
                everywhere(q, LEAST, "2")


def test_the_asked_replica_may_end_before_others_look():
    """The others sleep, or are stopped, and their first news is that it has
    ended."""
    for stopped, acceptor in ((False, "memory"), (True, "memory"),
                              (False, "message"), (True, "message")):
        with server(acceptor) as q:
            for value in range(700, 705):
                pids = q.pids()
                for n in (1, 2) if stopped else ():
                    os.kill(pids[n], signal.SIGSTOP)
                check("set", call(q, 0, "CONFIG", "SET", LAG, value), b"OK")
                os.kill(pids[0], signal.SIGKILL)
                next_life(q, 0, pids[0])
                for n in (1, 2) if stopped else ():
                    os.kill(pids[n], signal.SIGCONT)
                everywhere(q, LAG, str(value))
                online(q, 0)


def test_the_next_leader_goes_by_it():
    """The group starts with one follower that must keep up; then none must.
    The leader ends, and both followers of the next one stop: it continues
    alone."""
    with server() as q:
        first = leader_of(q)
        pid = q.pids()[first]
        check("set", call(q, first, "CONFIG", "SET", LEAST, 0), b"OK")
        everywhere(q, LEAST, "0")
        os.kill(pid, signal.SIGKILL)
        next_life(q, first, pid)
        for n in range(3):
            online(q, n)
        other = (first + 1) % 3
        check("a write", call(q, other, "SET", "key", "1"), b"OK")
        leader = leader_of(q, other)
        assert leader != first, "the ended replica leads"
        pids = q.pids()
        others = [n for n in range(3) if n != leader]
        for n in others:
            os.kill(pids[n], signal.SIGSTOP)
        waits = writes(q, leader, 150)
        check("all of them", {waits.reply() for _ in range(150)}, {b"OK"})
        waits.close()
        for n in others:
            os.kill(pids[n], signal.SIGCONT)
        for n in range(3):
            online(q, n)


def test_of_many_that_set_one_wins_everywhere():
    with server() as q:
        clients = [q.client(n) for n in range(3)]
        for i in range(200):
            for n, c in enumerate(clients):
                c.send(Client.encode("CONFIG", "SET", LAG, 1000 + 3 * i + n))
        for c in clients:
            check("each is answered", {c.reply() for _ in range(200)}, {b"OK"})
        value = get(q, 0, LAG)
        assert 1000 <= int(value) < 1600, value
        everywhere(q, LAG, value)
        check("what is set last", clients[0].call("CONFIG", "SET", LAG, 5),
              b"OK")
        for n in range(3):  # an iteration checks before it runs requests
            check("is in force immediately", get(q, n, LAG), "5")


FAILED = "ERR CONFIG SET failed (possibly related to argument '%s') - "
OWN = "set it in a command of its own: lag-timeout and min-replicas-to-write " \
      "do not go through the log, the others do"
REFUSED = (
    ((LAG, ""), FAILED % LAG +
     "argument couldn't be parsed into an integer"),
    ((LAG, "0"), FAILED % LAG +
     "argument must be between 1 and 3600000 inclusive"),
    ((LAG, "1s"), FAILED % LAG +
     "argument couldn't be parsed into an integer"),
    ((LEAST, "64"), FAILED % LEAST +
     "argument must be between 0 and 63 inclusive"),
    ((LEAST, "-1"), FAILED % LEAST +
     "argument couldn't be parsed into an integer"),
    ((LEAST, "auto"), FAILED % LEAST +
     "argument couldn't be parsed into an integer"),
    ((LEAST, b"1\0"), FAILED % LEAST +
     "argument couldn't be parsed into an integer"),
    ((LAG, "5", LEAST, "x"), FAILED % LEAST +
     "argument couldn't be parsed into an integer"),
    ((LAG, "5", LAG.upper(), "6"), FAILED % LAG.upper() +
     "duplicate parameter"),
    ((LAG, "5", "maxmemory", "1gb"), FAILED % "maxmemory" + OWN),
    (("maxmemory", "1gb", LAG, "5"), FAILED % "maxmemory" + OWN),
    ((LAG, "5", "port", "1"), FAILED % "port" + "can't set immutable config"),
    ((LAG, "5", "nothing", "1"), "ERR Unknown option or number of arguments "
     "for CONFIG SET - 'nothing'"),
    ((LAG, "5", LEAST), "ERR syntax error"),
)


def test_what_is_no_value_is_refused_and_changes_nothing():
    with server() as q:
        before = call(q, 0, "CONFIG", "GET", "*")
        c = q.client(0)
        for args, error in REFUSED:
            got = c.call("CONFIG", "SET", *args)
            assert isinstance(got, Error), (args, got)
            check("CONFIG SET %r" % (args,), str(got), error)
        c.close()
        check("the options", call(q, 0, "CONFIG", "GET", "*"), before)
        everywhere(q, LAG, "200")


main(sys.argv[3:], globals())
