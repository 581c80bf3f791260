"""Replicas that are killed or stopped under load: the others continue, no
acknowledged write is lost, no write is applied twice, and a restarted replica
agrees.

Usage: test_failover.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys
import threading

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.counters import Counters
from tests.process.lib.quoind import Client, Quoind
from tests.process.lib.verify import VerifiedLoad
from tests.process.lib.info_view import fields, info

PATH, QUOIN = sys.argv[1:3]
EVERY_KIND = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


# ---- state reported by a server ----

def role(q, name, asked):
    """The replica that is leader (or acceptor)."""
    return int(info(q, asked)[name])


def online(q, replica, pid_before):
    """A later incarnation of this replica is complete."""
    try:
        own = fields(info(q, replica), replica)
    except OSError:
        return False
    return own.get("state") == "online" and int(own["pid"]) != pid_before


def kill(q, *replicas):
    """At the same time, as far as one process can; they are restarted."""
    pids = q.pids()
    chosen = [pids[i] for i in replicas]
    for pid in chosen:
        os.kill(pid, signal.SIGKILL)
    return dict(zip(replicas, chosen))


def back(q, killed):
    """All of these have caught up."""
    for replica, pid in killed.items():
        wait_until("replica %d is back" % replica,
                   lambda: online(q, replica, pid))


class Piped(Quoind):
    """Its log goes into a pipe that is not read until `log` is read."""

    def open_log(self):
        self.end, errors = (os.fdopen(fd, mode, 0) for fd, mode in
                            zip(os.pipe(), ("rb", "wb")))
        return errors

    def fill(self):
        """Fills the pipe, so that no further line fits."""
        again = os.open("/proc/self/fd/%d" % self.errors.fileno(),
                        os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(again, b"x" * 4096)
        except BlockingIOError:
            pass
        finally:
            os.close(again)

    def read(self):
        """Reads the pipe from now on."""
        threading.Thread(target=self.end.readall, daemon=True).start()

    def log_so_far(self):
        return "draining"  # the outcome is unknown

    def _read_log(self):
        self.errors.close()
        return ""


# ---- what was written before ----

def fill(q, count=2000):
    c = q.client(0)
    check("fill", set(c.pipeline(*[("SET", "key%d" % i, i)
                                   for i in range(count)])), {b"OK"})
    c.close()


def check_filled(q, count=2000):
    for i in range(q.replicas):
        c = q.client(i)
        check("keys", c.pipeline(*[("GET", "key%d" % k)
                                   for k in range(count)]),
              [b"%d" % k for k in range(count)])
        c.close()


# ---- kills ----

def awaited(q):
    """How often the log says that a replica is awaited again."""
    return sum("waits for member" in x for x in q.log_so_far().splitlines())


def kill_role(acceptor, name, rounds=3):
    """Repeatedly, the replica that has the role at that time; the survivors
    continue before it is back, and then all agree."""
    with Quoind(PATH, args=["--acceptor", acceptor]) as q:
        fill(q)
        with Counters(q) as load:
            for _ in range(rounds):
                roles = info(q, 0)
                taken = {int(roles["leader"]), int(roles["acceptor"])}
                victim = int(roles[name]) if name != "learner" else \
                    max(set(range(3)) - taken)
                killed = kill(q, victim)
                load.progress(but=[victim])
                back(q, killed)
                load.progress()
        check_filled(q)
        agree(q)
        wait_until("each is awaited again", lambda: awaited(q) >= rounds)
        check("lines that one is awaited again", awaited(q), rounds)
        if name != "learner":
            assert int(info(q, 0)["failovers"]) > 0
        return "%s increments" % sum(c.done for c in load.all)


def test_leader_killed():
    return kill_role("memory", "leader")


def test_learner_killed():
    return kill_role("memory", "learner")


def test_leader_killed_process_acceptor():
    return kill_role("process", "leader")


def test_acceptor_killed_process_acceptor():
    return kill_role("process", "acceptor")


def test_learner_killed_process_acceptor():
    return kill_role("process", "learner")


def test_two_of_three_killed_at_the_same_instant():
    """Any two. With the memory acceptor the third has everything; it continues
    when the first of the others votes again."""
    with Quoind(PATH) as q:
        fill(q)
        with Counters(q) as load:
            for survivor in 0, 1, 2:
                killed = kill(q, *[i for i in range(3) if i != survivor])
                back(q, killed)
                load.progress()
        check_filled(q)
        agree(q)


def test_five_replicas_lose_one_after_the_other():
    """With the binary topology inner nodes of the tree are among them."""
    with Quoind(PATH, replicas=5, args=["--topology", "binary"]) as q:
        fill(q)
        with Counters(q) as load:
            for victim in range(5):
                killed = kill(q, victim)
                load.progress(but=[victim])
                back(q, killed)
        check_filled(q)
        agree(q)


def test_writes_in_flight_complete():
    """Sent before the leader was killed, through the survivors: each is
    answered, in order, once."""
    with Quoind(PATH) as q:
        for _ in range(3):
            leader = role(q, "leader", 0)
            others = [i for i in range(3) if i != leader]
            cs = [q.client(i) for i in others]
            start = [int(c.call("INCRBY", "flight%d" % i, 0))
                     for i, c in zip(others, cs)]
            for i, c in zip(others, cs):
                c.send(Client.encode("INCR", "flight%d" % i) * 500)
            killed = kill(q, leader)
            for c in cs:
                c.send(Client.encode("PING"))
            for n, c in zip(start, cs):
                check("in flight", [c.reply() for _ in range(500)],
                      list(range(n + 1, n + 501)))
                check("behind", c.reply(), b"PONG")
                c.close()
            back(q, killed)
        agree(q)


# ---- stopped replicas ----

def test_a_stopped_leader_is_deposed_and_catches_up():
    """Stopped until the others have continued without it; when it resumes it
    finds itself deposed. The stop has no fixed length: it ends when they have.
    """
    with Quoind(PATH) as q:
        fill(q)
        with Counters(q) as load:
            for _ in range(3):
                leader = role(q, "leader", 0)
                pid = q.pids()[leader]
                os.kill(pid, signal.SIGSTOP)
                load.progress(but=[leader])
                asked = (leader + 1) % 3
                now = role(q, "leader", asked)
                os.kill(pid, signal.SIGCONT)
                assert now != leader, "replica %d still leads" % leader
                load.progress()
                check("no replica was replaced", q.pids()[leader], pid)
        check_filled(q)
        agree(q)


def test_all_is_linearizable_while_leaders_die():
    with Quoind(PATH) as q, VerifiedLoad(q, QUOIN, "--mix", EVERY_KIND,
                                         "--rate", "5k", "--connections", "10",
                                         "--spread", "request") as verified:
        verified.answered(1)
        for _ in range(3):
            asked = 0
            leader = role(q, "leader", asked)
            killed = kill(q, leader)
            back(q, killed)
            verified.answered(1)
        summary, text, status = verified.end()
        assert status == 0, text
        check("verdict", summary["verify"]["verdict"], "linearizable")
        agree(q)
        return "%d operations" % summary["verify"]["operations"]


# ---- an incomplete replica does not serve ----

def test_new_connections_are_answered_while_one_is_gone():
    """At the common port, by any complete replica."""
    with Quoind(PATH) as q:
        fill(q)
        for victim in 2, 0:
            killed = kill(q, victim)
            wait_until("answered", lambda: answered(q))
            back(q, killed)


def answered(q):
    try:
        c = q.client()
        got = c.call("GET", "key0")
        c.close()
    except OSError:  # the queue of the dead one is just being closed
        return False
    check("read", got, b"0")
    return True


def leads_alone(q, pids, leader):
    """The other one dies without an announcement to the leader, which waits
    for no replica."""
    os.kill(pids[3 - leader], signal.SIGKILL)
    c = q.client(leader)
    wait_until("the leader knows the living replicas",
               lambda: c.call("SET", "alone", "1") == b"OK" and
               info(q, leader)["in_sync"] == str(leader))
    check("the tree", info(q, leader)["tree"], "")
    c.close()


def test_replicas_go_on_without_a_supervisor():
    """They monitor each other; a replica that ends then is not restarted."""
    for kind in "memory", "process":
        q = Quoind(PATH, args=["--acceptor", kind])
        q.__enter__()
        pids = q.pids()
        try:
            check("supervisor", info(q, 0)["supervisor"], "up")
            with Counters(q, [1, 2]) as load:
                q.proc.kill()
                q.proc.wait()
                load.progress()
                os.kill(pids[0], signal.SIGKILL)
                load.progress()
                wait_until("it is noticed", lambda: info(q, 1)["supervisor"]
                           == "down")
            agree(q, [1, 2])
            if kind == "memory":  # otherwise two of three are too many
                leads_alone(q, pids, role(q, "leader", 1))
        finally:
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def test_a_young_group_needs_no_snapshot():
    """The one complete replica is stopped while the others restart: the writes
    are in the ring of the dead leader, from the first slot on. Then it dies,
    too."""
    with Quoind(PATH) as q:
        with Counters(q):
            pass
        c = q.client(0)
        done = [int(c.call("GET", "counter%d" % i)) for i in range(3)]
        c.close()
        pids = q.pids()
        leader = role(q, "leader", 0)
        still = (leader + 1) % 3
        others = [i for i in range(3) if i != still]
        os.kill(pids[still], signal.SIGSTOP)
        back(q, kill(q, *others))
        for i in others:
            c = q.client(i)
            check("kept", [int(c.call("GET", "counter%d" % k))
                           for k in range(3)], done)
            c.close()
        os.kill(pids[still], signal.SIGKILL)
        back(q, {still: pids[still]})
        c = q.client(still)
        check("continues", [int(c.call("INCR", "counter%d" % k))
                          for k in range(3)], [n + 1 for n in done])
        c.close()
        agree(q)


def test_a_log_that_nobody_reads_holds_up_no_replica():
    """The survivors write log lines; the restart of the dead replica may wait
    until they are read."""
    with Piped(PATH) as q:
        q.fill()
        leader = role(q, "leader", 0)
        with Counters(q, [i for i in range(3) if i != leader]) as load:
            killed = kill(q, leader)
            load.progress()
        q.read()
        back(q, killed)
        agree(q)


def test_restart_no_leaves_it_dead():
    with Quoind(PATH, args=["--restart", "no"]) as q:
        with Counters(q, [0, 1]) as load:
            kill(q, 2)
            load.progress()
        wait_until("two are left", lambda: len(q.pids()) == 2)


main(sys.argv[3:], globals())
