"""Clients of a server whose members come and go (`quoin member`): connections
to the common port, clients of a member that is removed, INFO, WAIT, and a
server that has changed and is adopted and upgraded.

Usage: test_member_clients.py QUOIND QUOIN [NAME...]
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from tests.process.cluster.adoption import (adopt, kill_replicas,
                                            kill_supervisor, launch, pids_of)
from tests.process.lib.checks import check, main, turns, wait_until
from tests.process.lib.info_view import info, look
from tests.process.lib.quoind import Client, Error, Quoind

PATH, QUOIN = map(os.path.abspath, sys.argv[1:3])


def member(q, *words):
    """`quoin member` at the common port. @return what it prints."""
    return member_at(q.port, *words)


def member_of(q, replica, *words):
    return member_at(q.port + 1 + replica, *words)


def member_at(port, *words):
    p = subprocess.run([QUOIN, "member", *words, "--to",
                        "127.0.0.1:%d" % port],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)
    check("%s: %s" % (" ".join(words), p.stderr), p.returncode, 0)
    return p.stdout


def add(q):
    return int(member(q, "add").split()[1])


def remove(q, replica):
    member(q, "remove", "--replica", str(replica))


def complete(q, *members):
    """These are the voters, all of them are online, and no other process is
    there."""
    def there():
        v = look(q, members)
        pids = pids_of(q)
        return v is not None and v.voters == set(members) and \
            set(pids) == set(members) and v.current(pids)
    wait_until("%r are the members" % (members,), there)


class Callers:
    """Threads with a new connection to the common port for each request. None
    is refused or reset. One that was accepted by a member that leaves may
    be closed without a reply, as in an upgrade."""

    def __init__(self, q, threads=2):
        self.q, self.answered, self.closed, self.wrong = q, 0, 0, []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run)
                        for _ in range(threads)]

    def one(self):
        try:
            c = Client(self.q.port)
        except OSError as e:
            self.wrong.append("connect: %r" % e)
            return
        try:
            got = c.call("PING")
            with self.lock:
                self.answered += 1
            if got != b"PONG":
                self.wrong.append("reply: %r" % got)
        except ConnectionResetError as e:
            self.wrong.append("%r" % e)
        except ConnectionError:  # closed: Client has seen the end
            with self.lock:
                self.closed += 1
        finally:
            c.close()

    def run(self):
        while not self.over.is_set() and not self.wrong:
            self.one()

    def more(self, count=20):
        """`count` further ones are answered."""
        upto = self.answered + count
        wait_until("connections are served: %r" % self.wrong,
                   lambda: self.answered >= upto or self.wrong)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        for t in self.threads:
            t.join()


def test_no_connection_is_refused_or_reset():
    """Members are added and removed, the one with the first lead among them."""
    with Quoind(PATH, replicas=1, seats=4) as q, Callers(q) as callers:
        callers.more()
        for step in (add, 1), (add, 2), (remove, 0), (add, 0), (remove, 1):
            if step[0] is add:
                check("seat", add(q), step[1])
            else:
                remove(q, step[1])
            callers.more()
        check("what went wrong", callers.wrong, [])
    check("what went wrong", callers.wrong, [])
    return "%d answered, %d closed" % (callers.answered, callers.closed)


def test_info_and_wait_follow_the_members():
    with Quoind(PATH, replicas=1, seats=4) as q:
        c = q.client(0)
        for voters, least in ([0], 0), ([0, 1], 0), ([0, 1, 2], 1):
            if voters != [0]:
                check("seat", add(q), voters[-1])
            complete(q, *voters)
            check("set", c.call("SET", "a", len(voters)), b"OK")
            check("wait", c.call("WAIT", len(voters) - 1, 0), len(voters) - 1)
            check("no more", c.call("WAIT", len(voters), 1), len(voters) - 1)
            for i in voters:
                lines = info(q, i)
                check("replicas", lines["replicas"], str(len(voters)))
                check("voters", lines["voters"], ",".join(map(str, voters)))
                check("non_voting", lines["non_voting"], "")
                check("missing", lines["replicas_missing"], "")
                check("vacant", lines["vacant_seats"],
                      ",".join(map(str, range(len(voters), 4))))
                check("least", lines["min_replicas_to_write"], str(least))
        check("set least", c.call("CONFIG", "SET", "min-replicas-to-write",
                                  "0"), b"OK")
        remove(q, 2)
        complete(q, 0, 1)
        check("seat", add(q), 2)
        complete(q, 0, 1, 2)
        for i in range(3):
            wait_until("an operator's number stays", lambda: info(q, i)[
                "min_replicas_to_write"] == "0")
        c.close()


def test_clients_of_a_removed_replica_are_answered():
    """What had come to it is answered; then its connections end. The others
    have what it has answered."""
    with Quoind(PATH, replicas=1, seats=3) as q:
        check("seats", (add(q), add(q)), (1, 2))
        clients = [q.client(2) for _ in range(10)]
        for n, c in enumerate(clients):
            check("set", c.call("SET", "key%d" % n, n), b"OK")
        remove(q, 2)
        for c in clients:
            try:
                got = c.call("GET", "key0")
                raise AssertionError("a removed replica answers: %r" % got)
            except ConnectionError:
                pass
            c.close()
        complete(q, 0, 1)
        c = q.client(1)
        check("keys", c.pipeline(*[("GET", "key%d" % n) for n in range(10)]),
              [b"%d" % n for n in range(10)])
        c.close()


def test_a_removed_replica_that_wakes_late_ends():
    """It was stopped with a write of its client under way, and was removed
    meanwhile. It says no more of that write than is so."""
    with Quoind(PATH, replicas=3, args=["--shutdown-timeout", "60"]) as q:
        c = q.client(2)
        other = q.client(0)
        check("set", c.call("SET", "a", "before"), b"OK")
        pids = pids_of(q)
        for i in 0, 1:
            os.kill(pids[i], signal.SIGSTOP)
        c.send(c.encode("SET", "a", "begun"))
        turns(q, [2], 5)
        os.kill(pids[2], signal.SIGSTOP)
        for i in 0, 1:
            os.kill(pids[i], signal.SIGCONT)
        c.send(c.encode("SET", "a", "late"))
        failed = []
        removal = threading.Thread(
            target=lambda: failed.append(remove(q, 2)))
        removal.start()
        wait_until("it has no vote", lambda: info(q, 0)["voters"] == "0,1")
        check("others go on", other.call("SET", "b", "on"), b"OK")
        os.kill(pids[2], signal.SIGCONT)
        begun, late = c.reply(), c.reply()
        removal.join()
        check("removed", failed, [None])
        q.logged("replica 2 was removed from the group")
        complete(q, 0, 1)
        value = other.call("GET", "a")
        assert isinstance(late, Error) and "was removed" in str(late), late
        if begun == b"OK":
            check("value", value, b"begun")
        else:
            assert "outcome unknown" in str(begun), begun
            assert value in (b"before", b"begun"), value
        c.close()
        other.close()
    check("status", q.status, 0)
    return "its write: %s" % begun


def test_one_is_added_beside_a_stopped_replica():
    """Which has no lanes for it, and meets it when it goes on; also one that
    came again meanwhile. A follower is stopped, then the leader."""
    with Quoind(PATH, seats=5) as q:
        for seat in 3, 4:
            members = list(range(seat))
            stopped = 1 if seat == 3 else look(q, members).leader
            other = 2 if stopped != 2 else 0
            pids = pids_of(q)
            os.kill(pids[stopped], signal.SIGSTOP)
            check("seat", int(member_of(q, other, "add").split()[1]), seat)
            first = pids_of(q)[seat]
            os.kill(first, signal.SIGKILL)
            wait_until("it is back", lambda: pids_of(q).get(seat) not in (
                None, first) and "replica%d:state=online" % seat in member_of(
                q, other, "list"))
            c = q.client(seat)
            check("set", c.call("SET", "a", seat), b"OK")
            assert c.call("WAIT", seat, 1) < seat, "the stopped one confirms"
            os.kill(pids[stopped], signal.SIGCONT)
            complete(q, *members, seat)
            check("set", c.call("SET", "a", "on"), b"OK")
            check("it is there", c.call("WAIT", seat, 0), seat)
            c.close()
            check("processes", {i: pids_of(q)[i] for i in members}, pids)
    check("status", q.status, 0)


def test_a_server_that_has_changed_is_adopted_and_upgraded():
    """It began with replica 0, which is gone: 1, 2 and 3 are the members."""
    with tempfile.TemporaryDirectory() as d, \
            Quoind(PATH, replicas=1, seats=5) as q:
        c = q.client(0)
        check("set", c.call("SET", "a", "1"), b"OK")
        c.close()
        check("seats", (add(q), add(q), add(q)), (1, 2, 3))
        remove(q, 0)
        complete(q, 1, 2, 3)
        kill_supervisor(q)
        kill_replicas(q, 1)
        adopt(q, 2)
        complete(q, 1, 2, 3)
        check("least", info(q, 1)["min_replicas_to_write"], "1")
        before = pids_of(q)
        shutil.copy(PATH, os.path.join(d, "quoind"))
        old, q.cmd = q.proc, [os.path.join(d, "quoind")] + q.cmd[1:]
        q.proc = launch(q, "--upgrade")
        check("status of the old one", old.wait(60), 0)
        wait_until("all are replaced", lambda: b"upgrade: done" in os.pread(
            q.ready.fileno(), 1 << 16, 0))
        complete(q, 1, 2, 3)
        check("processes of before",
              set(before.values()) & set(pids_of(q).values()), set())
        check("seat", add(q), 0)
        complete(q, 0, 1, 2, 3)
        for i in range(4):
            c = q.client(i)
            check("get", c.call("GET", "a"), b"1")
            c.close()


if __name__ == "__main__":
    main(sys.argv[3:], dict(globals()))
