"""Never two living processes of one replica: full queues, replicas that are
stopped while supervisors die in turn, held locks, and an incarnation begun by
another process.

Usage: test_vacancy.py QUOIND QUOIN [NAME...]
"""
import fcntl
import mmap
import os
import signal
import socket
import struct
import sys
import tempfile
import time

from tests.process.cluster.adoption import (adopt, alone, door, end_well, fill, kill_replicas,
                      kill_supervisor, launch, online, pids_of, refused,
                      start_again)
from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Quoind

PATH = sys.argv[1]
PAGE = os.sysconf("SC_PAGESIZE")
STRETCH = -(-(64 + (28 << 10)) // PAGE) * PAGE  # core/place/commons.c


class Crowd:
    """Connections to a replica's socket for adopters, until its queue is full;
    they never send anything."""

    def __init__(self, q, replica):
        self.held = []
        while True:
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.setblocking(False)
            try:
                s.connect(door(q, replica))
            except BlockingIOError:
                s.close()
                return
            self.held.append(s)

    def leave(self):
        for s in self.held:
            s.close()


def said(q, words):
    return words in q.log_so_far()


def commons(q, replica):
    """A descriptor of the group's commons."""
    where = "/proc/%d/fd" % pids_of(q)[replica]
    for fd in os.listdir(where):
        path = os.path.join(where, fd)
        if "quoin-commons" in os.readlink(path):
            return os.open(path, os.O_RDWR)
    raise AssertionError("no commons")


# ---- a queue that is full ----

def test_full_queue():
    """By an unrelated process: the replica serves all the time, and is adopted
    when it can be asked."""
    with Quoind(PATH) as q:
        n = fill(q)
        before = pids_of(q)
        crowd = Crowd(q, 2)
        kill_supervisor(q)
        alone(q, 2)
        crowd2 = Crowd(q, 2)  # it has accepted one
        adopt(q, 3)
        n.add(2)
        check("the same processes", pids_of(q), before)
        assert q.logged("runs and takes no connection")
        crowd.leave()
        crowd2.leave()
        wait_until("it is adopted", lambda: said(q, "is adopted now"))
        check("still the same", pids_of(q), before)
        kill_replicas(q, 2)  # and is restarted, like any other
        end_well(q, n)
    check("drained", q.status, 0)


def test_all_queues_full():
    """No replica can be asked: no second group, but one line, and the server
    starts when one answers."""
    with Quoind(PATH) as q:
        n = fill(q)
        before = pids_of(q)
        crowds = [Crowd(q, i) for i in range(3)]
        kill_supervisor(q)
        for i in range(3):
            alone(q, i)
        crowds += [Crowd(q, i) for i in range(3)]
        q.proc = launch(q)
        wait_until("it reports it", lambda: said(q, "waiting for it"))
        n.add(0)
        check("not ready", os.pread(q.ready.fileno(), 1 << 16, 0), b"")
        check("the same processes", pids_of(q), before)
        for c in crowds:
            c.leave()
        wait_until("it is ready", lambda: b"adopted 3 replica" in
                   os.pread(q.ready.fileno(), 1 << 16, 0))
        check("one line", q.log_so_far().count("waiting for it"), 1)
        check("still the same", pids_of(q), before)
        end_well(q, n)
    check("drained", q.status, 0)


def test_told_to_end_while_all_are_busy():
    with Quoind(PATH) as q:
        n = fill(q)
        crowds = [Crowd(q, i) for i in range(3)]
        kill_supervisor(q)
        for i in range(3):
            alone(q, i)
        crowds += [Crowd(q, i) for i in range(3)]
        p = launch(q)
        wait_until("it reports it", lambda: said(q, "waiting for it"))
        p.terminate()
        check("status", p.wait(), 2)
        for c in crowds:
            c.leave()
        adopt(q, 3)
        end_well(q, n)
    check("drained", q.status, 0)


def test_told_to_end_while_one_is_busy():
    """A replica that cannot be asked yet gets the order to drain as soon as it
    can."""
    with Quoind(PATH) as q:
        fill(q)
        crowd = Crowd(q, 2)
        kill_supervisor(q)
        alone(q, 2)
        crowd2 = Crowd(q, 2)
        adopt(q, 3)
        assert q.logged("runs and takes no connection")
        q.proc.terminate()
        wait_until("it drains", lambda: said(q, "draining"))
        time.sleep(0.3)
        check("it waits", q.proc.poll(), None)
        crowd.leave()
        crowd2.leave()
        check("status", q.proc.wait(10), 0)
    assert "killed" not in q.log, q.log


# ---- a stopped replica ----

def stand_still(q, replica, supervisors):
    """Each supervisor asks it, and dies."""
    kill_supervisor(q)
    alone(q, replica)
    pid = pids_of(q)[replica]
    os.kill(pid, signal.SIGSTOP)
    for _ in range(supervisors):
        adopt(q, 3)
        check("the same process", pids_of(q)[replica], pid)
        kill_supervisor(q)
    return pid


def test_stopped_while_supervisors_die():
    """More requests than its queue has room for."""
    with Quoind(PATH) as q:
        n = fill(q)
        pid = stand_still(q, 2, 8)
        adopt(q, 3)
        assert q.logged("runs and takes no connection")
        n.add(0)
        os.kill(pid, signal.SIGCONT)
        wait_until("it is adopted", lambda: said(q, "is adopted now"))
        check("the same process", pids_of(q)[2], pid)
        end_well(q, n)
    check("drained", q.status, 0)


def test_stopped_one_is_killed():
    """Only then there is another one."""
    with Quoind(PATH) as q:
        n = fill(q)
        pid = stand_still(q, 2, 8)
        adopt(q, 3)
        check("the same process", pids_of(q)[2], pid)
        os.kill(pid, signal.SIGKILL)
        wait_until("another one", lambda: pids_of(q).get(2, pid) != pid and
                   online(q, 2))
        end_well(q, n)
    check("drained", q.status, 0)


def test_stopped_one_was_told_to_leave():
    """It leaves when it continues, received or not, and is not restarted."""
    with Quoind(PATH) as q:
        n = fill(q)
        pid = stand_still(q, 2, 8)
        os.kill(pid, signal.SIGTERM)
        adopt(q, 3)
        os.kill(pid, signal.SIGCONT)
        wait_until("it has left", lambda: 2 not in pids_of(q))
        n.add(0)
        kill_replicas(q, 1)  # it comes back, the other does not
        wait_until("replica 1 is back", lambda: 1 in pids_of(q) and
                   online(q, 1))
        n.add(1)
        check("replicas", sorted(pids_of(q)), [0, 1])
    check("drained", q.status, 0)


# ---- locks and lives ----

def test_held_by_another_process():
    """An incarnation does not start while another process holds the lock of
    its node."""
    with Quoind(PATH) as q:
        n = fill(q)
        fd = commons(q, 0)
        kill_replicas(q, 2)
        while True:  # between two incarnations, or not yet
            try:
                fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2)
                break
            except OSError:
                kill = pids_of(q).get(2)
                if kill is not None:
                    os.kill(kill, signal.SIGKILL)
        wait_until("it is refused",
                   lambda: said(q, "another process is this replica"))
        n.add(0)
        os.close(fd)
        wait_until("it is back", lambda: 2 in pids_of(q) and online(q, 2))
        end_well(q, n)
    check("drained", q.status, 0)


def begin_another_life(q, replica):
    """As a second process of it would: {incarnation, thread}."""
    fd = commons(q, replica)
    at = 2 * PAGE + replica * STRETCH
    with mmap.mmap(fd, at + STRETCH) as m:
        inc, tid = struct.unpack_from("=QQ", m, at)
        check("its word", tid, pids_of(q)[replica])
        struct.pack_into("=Q", m, at, inc + 1)
    os.close(fd)


def turned(q, replica):
    """No replica wakes one that is dead to all others, so it checks when a
    client has a request for it."""
    try:
        q.client(replica).close()
    except OSError:
        pass  # it has just ended
    return True


def test_ends_itself_when_another_life_has_begun():
    with Quoind(PATH) as q:
        n = fill(q)
        pid = pids_of(q)[1]
        os.kill(pid, signal.SIGSTOP)
        begin_another_life(q, 1)
        n.add(0)
        os.kill(pid, signal.SIGCONT)
        wait_until("it ends itself", lambda: turned(q, 1) and
                   pids_of(q).get(1) != pid)
        line = [l for l in q.log_so_far().splitlines()
                if "a later incarnation has begun" in l]
        check("one line", len(line), 1)
        assert "replica 1 (process %d)" % pid in line[0], line
        wait_until("a new one", lambda: 1 in pids_of(q) and online(q, 1))
        end_well(q, n)
    check("drained", q.status, 0)


def test_names_taken_by_others():
    """Abstract names, which any process can take, and a folder of another
    user: neither is a problem."""
    q = Quoind(PATH)
    taken = []
    for role in ("", "s ", "r0 ", "r1 ", "r2 "):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.bind("\0quoind %s127.0.0.1 %d" % (role, q.port))
        taken.append(s)
    with q:
        n = fill(q)
        kill_supervisor(q)
        kill_replicas(q, 1)
        adopt(q, 2)
        end_well(q, n)
    check("drained", q.status, 0)
    for s in taken:
        s.close()


def test_folder():
    """The user's own folder is used and left clean; one that others can write
    to is refused."""
    with tempfile.TemporaryDirectory() as d:
        mine = os.path.join(d, "run")
        with Quoind(PATH, args=["--run-dir", mine]) as q:
            n = fill(q)
            check("doors", len(os.listdir(mine)), 6)
            kill_supervisor(q)
            kill_replicas(q, 2)
            adopt(q, 2)
            end_well(q, n)
        check("drained", q.status, 0)
        check("left", sorted(f.split(".", 4)[-1] for f in os.listdir(mine)),
              ["s.lock", "server"])
        os.chmod(mine, 0o777)
        line = refused(q)
        assert "run-dir" in line and "no other user can write" in line, line


def test_two_servers_at_once():
    """One of them serves, no matter which was first."""
    with Quoind(PATH) as q:
        n = fill(q)
        for _ in range(3):
            line = refused(q)
            assert "already" in line, line
        end_well(q, n)
    check("drained", q.status, 0)
    rivals = [launch(q) for q in (Rival(q), Rival(q))]
    wait_until("one gives up", lambda: any(p.poll() is not None
                                           for p in rivals))
    loser = 0 if rivals[0].poll() is not None else 1
    check("status", rivals[loser].returncode, 2)
    rivals[1 - loser].terminate()
    rivals[1 - loser].wait()


class Rival:
    """Started at the address of a server that has ended."""

    def __init__(self, q):
        self.cmd = q.cmd
        self.errors = open(os.devnull, "wb")


if __name__ == "__main__":
    main(sys.argv[3:], dict(globals()))
