"""The supervisor is killed, with and without replicas, in every order that
leaves one alive; a new quoind on the address adopts the living replicas and
starts the others. No acknowledged write is lost, and all replicas agree.

Usage: test_adopt.py QUOIND QUOIN [NAME...]
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

from tests.process.cluster.adoption import (EVENT, adopt, alone, complete, door, end_well, fill, kinds,
                      kill_replicas, kill_supervisor, launch, narrow, online,
                      pids_of, refused, start_again, version)
from tests.process.lib.checks import Background, check, main, wait_until
from tests.process.lib.quoind import Client, Quoind, end_with_parent
from tests.process.lib.info_view import look

PATH = sys.argv[1]
ADOPT, VERSION = kinds()["ADOPT"], version()


# ---- orders of deaths ----

def test_supervisor():
    with Quoind(PATH) as q:
        n = fill(q)
        before = pids_of(q)
        held = q.client(1)
        kill_supervisor(q)
        n.add(2)
        adopt(q, 3)
        check("the same processes", pids_of(q), before)
        check("the same connections", held.call("PING"), b"PONG")
        wait_until("it has one", lambda: b"supervisor:up" in
                   held.call("INFO", "quoin"))
        held.close()
        kill_replicas(q, 0)  # and its duties
        end_well(q, n)
    check("drained", q.status, 0)


def test_supervisor_then_a_replica():
    for victim in range(3):
        with Quoind(PATH) as q:
            n = fill(q)
            kill_supervisor(q)
            kill_replicas(q, victim)
            n.add((victim + 1) % 3)
            adopt(q, 2)
            end_well(q, n)
        check("drained", q.status, 0)


def test_a_replica_then_supervisor():
    """Before, during, or just after its restart."""
    for victim in range(3):
        with Quoind(PATH) as q:
            n = fill(q)
            os.kill(pids_of(q)[victim], signal.SIGKILL)
            kill_supervisor(q)
            n.add((victim + 1) % 3)
            q.proc = launch(q)
            end_well(q, n)
        check("drained", q.status, 0)


def test_idle_group_whose_leader_died():
    """No client is active: the adopter announces the death, and keeps the
    state that the next incarnation needs."""
    with Quoind(PATH) as q:
        n = fill(q)
        leader = look(q, [0]).leader
        kill_supervisor(q)
        kill_replicas(q, leader)
        adopt(q, 2)
        end_well(q, n)
    check("drained", q.status, 0)


def test_supervisor_twice():
    with Quoind(PATH) as q:
        n = fill(q)
        for _ in range(2):
            kill_supervisor(q)
            n.add(1)
            adopt(q, 3)
        kill_replicas(q, 1)
        complete(q)
        kill_supervisor(q)
        adopt(q, 3)  # one of them a child of the previous one
        end_well(q, n)
    check("drained", q.status, 0)


def test_adopter_killed():
    """At any moment of adopting."""
    with Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        kill_replicas(q, 2)
        for tries in range(40):
            p = launch(q)
            for _ in range(tries * 4000):
                os.getpid()  # a little later each time
            p.kill()
            p.wait()
            n.add(tries % 2, 5)
        start_again(q)
        end_well(q, n)
    check("drained", q.status, 0)


def test_all_but_one():
    for survivor in range(3):
        with Quoind(PATH) as q:
            n = fill(q)
            kill_supervisor(q)
            kill_replicas(q, *(set(range(3)) - {survivor}))
            adopt(q, 1)
            end_well(q, n)
        check("drained", q.status, 0)


def test_under_load():
    with Quoind(PATH) as q:
        n = fill(q)
        with Background(n.add, 0, 3000):
            for _ in range(3):
                kill_supervisor(q)
                adopt(q, 3)
        end_well(q, n)


def test_process_acceptor():
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        n = fill(q)
        kill_supervisor(q)
        victim = ({0, 1, 2} - {look(q, [0]).leader}).pop()
        kill_replicas(q, victim)
        n.add((victim + 1) % 3)
        adopt(q, 2)
        end_well(q, n)
    check("drained", q.status, 0)


def test_one_that_stands_still():
    with Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        alone(q, 0)
        pid = pids_of(q)[2]
        os.kill(pid, signal.SIGSTOP)
        adopt(q, 3)
        n.add(0)
        os.kill(pid, signal.SIGCONT)
        alive = q.client(2)
        wait_until("it has heard", lambda: b"supervisor:up" in
                   alive.call("INFO", "quoin"))
        alive.close()
        check("the same process", pids_of(q)[2], pid)
        end_well(q, n)
    check("drained", q.status, 0)


def live_often(q, replica, lives):
    for _ in range(lives):
        kill_replicas(q, replica)
        c = q.client(replica)  # answered after its introduction
        c.call("PING")
        c.close()
    wait_until("it is back", lambda: online(q, replica))


def stands_still_through_many_lives(q, n, wakes):
    """More messages than its socket has room for; then the supervisor is
    another."""
    assert narrow(q.proc.pid) >= q.replicas
    pid = pids_of(q)[2]
    os.kill(pid, signal.SIGSTOP)
    live_often(q, 1, 20)
    live_often(q, 0, 1)
    n.add(0)
    check("the same process", pids_of(q)[2], pid)
    wakes(pid)
    c = q.client(2)
    check("it waits for both", c.call("WAIT", 2, 0), 2)
    c.close()
    check("still the same", pids_of(q)[2], pid)
    end_well(q, n)


def test_one_that_slept_through_many_lives():
    with Quoind(PATH) as q:
        stands_still_through_many_lives(
            q, fill(q), lambda pid: os.kill(pid, signal.SIGCONT))
    check("drained", q.status, 0)


def test_one_that_slept_through_lives_and_the_supervisor():
    """The next supervisor reports what the dead one had not: about a replica
    that is late, and about one that is in time but was never announced."""
    with Quoind(PATH) as q:
        def late(pid):
            kill_supervisor(q)
            adopt(q, 3)
            os.kill(pid, signal.SIGCONT)
        stands_still_through_many_lives(q, fill(q), late)
    check("drained", q.status, 0)
    with Quoind(PATH) as q:
        def in_time(pid):
            kill_supervisor(q)
            os.kill(pid, signal.SIGCONT)
            alone(q, 2)
            adopt(q, 3)
        stands_still_through_many_lives(q, fill(q), in_time)
    check("drained", q.status, 0)


def test_one_that_was_told_to_leave():
    """With and without a supervisor: it is not started again."""
    for orphan in (False, True):
        with Quoind(PATH) as q:
            n = fill(q)
            if orphan:
                kill_supervisor(q)
                alone(q, 2)
            os.kill(pids_of(q)[2], signal.SIGTERM)
            wait_until("it has left", lambda: 2 not in pids_of(q))
            n.add(0)
            if not orphan:
                kill_supervisor(q)
            adopt(q, 2)
            kill_replicas(q, 1)  # it comes back, the other does not
            wait_until("replica 1 is back", lambda: 1 in pids_of(q) and
                       online(q, 1))
            n.add(1)
            check("replicas", sorted(pids_of(q)), [0, 1])
        check("drained", q.status, 0)


def any_port():
    """A server on a port that it was assigned; its own ports follow it.

    Where closed connections hold most ports a server takes any free ports for
    its replicas, as is right; then another one is started.
    """
    for _ in range(20):
        q = Quoind(PATH)
        at = q.cmd.index("--port") + 1
        q.cmd[at] = "0"
        q.errors = tempfile.TemporaryFile()
        q.proc = launch(q)
        wait_until("it is ready", lambda: b"\n" in
                   os.pread(q.ready.fileno(), 1 << 16, 0))
        line = os.pread(q.ready.fileno(), 1 << 16, 0).decode()
        q.port = int(re.search(r"ready on 127.0.0.1:(\d+)", line).group(1))
        q.cmd[at] = str(q.port)
        own = [int(n) for n in re.findall(r"on port (\d+)", line)]
        if own == [q.port + 1 + i for i in range(3)]:
            return q
        check("own ports differ", len(set(own + [q.port])), 4)
        q.proc.terminate()
        check("status", q.proc.wait(), 0)
    raise AssertionError("no free ports in a row in 20 attempts")


def test_any_port():
    """--port 0: found by the port that it was assigned."""
    q = any_port()
    try:
        n = fill(q)
        pid = look(q, [0]).pid(1)
        kill_supervisor(q)
        os.kill(pid, signal.SIGKILL)
        wait_until("it is gone", lambda: not os.path.exists("/proc/%d" % pid))
        adopt(q, 2)
        wait_until("replica 1 is back", lambda: online(q, 1))
        n.check_everywhere()
    finally:
        q.proc.terminate()
        check("status", q.proc.wait(), 0)


def test_unix_socket():
    class Unix(Client):
        def __init__(self, path):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(60)
            self.sock.connect(path)
            self.buf = b""

    def serves():
        try:
            return Unix(path + ".1").call("GET", "a") == b"1"
        except OSError:
            return False  # its own address is part of it

    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "s")
        with Quoind(PATH) as q:  # for its ways of ending
            kill_supervisor(q)
            adopt(q, 3)
        q.cmd = [PATH, "--unixsocket", path, "--replicas", "3"]
        q.errors = tempfile.TemporaryFile()
        q.port = path
        q.proc = launch(q)
        try:
            wait_until("ready", lambda: b"\n" in
                       os.pread(q.ready.fileno(), 1 << 16, 0))
            check("set", Unix(path).call("SET", "a", "1"), b"OK")
            kill_supervisor(q)
            kill_replicas(q, 1)
            adopt(q, 2)
            wait_until("replica 1 serves", serves)
        finally:
            q.proc.terminate()
            check("status", q.proc.wait(), 0)
        check("left behind", os.listdir(d), [])


# ---- refusals ----

def test_not_while_the_supervisor_lives():
    with Quoind(PATH) as q:
        n = fill(q)
        assert "serves 127.0.0.1:%d already" % q.port in refused(q)
        end_well(q, n)
    check("drained", q.status, 0)


def test_contradicting_options():
    with Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        for args in (("--replicas", "5"), ("--acceptor", "process"),
                     ("--databases", "3")):
            line = refused(q, *args)
            assert "%s %s contradicts" % args in line, line
        adopt(q, 3)
        end_well(q, n)
    check("drained", q.status, 0)


def test_another_version():
    with Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
            s.settimeout(60)
            at = door(q, 0)
            s.connect(at)
            s.send(EVENT.pack(99, 0, 0, 0, 0))  # logged and skipped
            s.send(EVENT.pack(ADOPT, 0, 0, 0, VERSION + 1))
            said = EVENT.unpack(s.recv(EVENT.size))
            check("kind and version", (said[0], said[4]), (ADOPT, VERSION))
            line = "replica 0: unknown control message type 99"
            assert q.logged(line)
            n.add(0)
        adopt(q, 3)
        end_well(q, n)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(at)  # a later quoind's replica
        s.listen()
        p = subprocess.Popen(q.cmd, stderr=subprocess.PIPE,
                             stdout=subprocess.DEVNULL)
        came = s.accept()[0]
        check("its own version", EVENT.unpack(came.recv(EVENT.size))[4], VERSION)
        with tempfile.TemporaryFile() as f:
            socket.send_fds(came, [EVENT.pack(ADOPT, 0, 1, 0, VERSION + 1)],
                            [f.fileno()])
        line = p.communicate()[1]
        assert b"another version" in line, line
        check("status", p.returncode, 2)
    os.unlink(at)


def test_two_adopters():
    with Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        errors = [tempfile.TemporaryFile() for _ in range(2)]
        ready = [tempfile.TemporaryFile() for _ in range(2)]
        both = [subprocess.Popen(q.cmd, stdout=r, stderr=e,
                                 preexec_fn=end_with_parent)
                for r, e in zip(ready, errors)]
        wait_until("one gives up", lambda: any(
            p.poll() is not None for p in both))
        loser = 0 if both[0].poll() is not None else 1
        check("status", both[loser].returncode, 2)
        assert b"already" in os.pread(errors[loser].fileno(), 1 << 16, 0)
        q.proc = both[1 - loser]
        wait_until("the other is ready", lambda: b"adopted 3 replicas" in
                   os.pread(ready[1 - loser].fileno(), 1 << 16, 0))
        end_well(q, n)
    check("drained", q.status, 0)


if __name__ == "__main__":
    main(sys.argv[3:], dict(globals()))
