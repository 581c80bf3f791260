"""A running group is handed over to another build, replica by replica:
`--upgrade`.

The other build is a copy of the file; a defective one is stub_quoind. The load
meanwhile is checked: linearizable, no acknowledged write lost, all replicas
agree.

Usage: test_upgrade.py QUOIND QUOIN STUB [NAME...]
"""
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from tests.process.cluster.adoption import (EVENT, door, end_well, fill, kill_supervisor, kinds,
                      launch, pids_of, refused, version)
from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Quoind, end_with_parent
from tests.process.lib.verify import VerifiedLoad

PATH, QUOIN, STUB = map(os.path.abspath, sys.argv[1:4])
KIND, VERSION = kinds(), version()


class Build:
    """The same program in another file."""

    def __init__(self, of=PATH):
        self.dir = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.dir.name, "quoind")
        shutil.copy(of, self.path)

    def __enter__(self):
        return self.path

    def __exit__(self, *exc):
        self.dir.cleanup()


def said(q):
    return os.pread(q.ready.fileno(), 1 << 16, 0).decode()


def upgrade(q, path, *args):
    """The server runs `path` from now on; its lines go to q.ready."""
    old = q.proc
    q.cmd = [path] + q.cmd[1:]
    q.proc = launch(q, "--upgrade", *args)
    check("status of the old one", old.wait(60), 0)


def upgraded(q, path, *args):
    upgrade(q, path, *args)
    wait_until("it is done: " + said(q), lambda: "upgrade: done" in said(q))
    for i, pid in pids_of(q).items():
        check("program of %d" % i, os.readlink("/proc/%d/exe" % pid), path)


def under_load(*args):
    with Build() as new, Quoind(PATH, args=args) as q:
        n = fill(q)
        before = pids_of(q)
        with VerifiedLoad(q, QUOIN, "--mix", "get:40,set:40,incr:20", "--rate",
                          "500", "--connections", "9") as verified:
            verified.answered(1)
            upgraded(q, new)
            summary, text, status = verified.end()
            check("verdict: " + text, status, 0)
        check("processes of before",
              set(before.values()) & set(pids_of(q).values()), set())
        end_well(q, n)
    check("drained", q.status, 0)
    return "%d asked" % summary["ops"]


def test_memory_acceptor():
    return under_load()


def test_process_acceptor():
    return under_load("--acceptor", "process")


def test_of_orphans_and_after_a_death_halfway():
    """No supervisor at first; the one that upgrades is killed; the next one
    continues."""
    with Build() as new, Quoind(PATH) as q:
        n = fill(q)
        kill_supervisor(q)
        q.cmd = [new] + q.cmd[1:]
        q.proc = launch(q, "--upgrade")
        wait_until("one is replaced", lambda: "is complete" in said(q))
        kill_supervisor(q)
        n.add(0)
        q.proc = launch(q, "--upgrade")
        wait_until("it is done", lambda: "upgrade: done" in said(q))
        assert "runs this quoind already" in said(q), said(q)
        end_well(q, n)
    check("drained", q.status, 0)


def no_good(how, *args):
    with Build(STUB) as bad, Quoind(PATH) as q:
        n = fill(q)
        os.environ["QN_STUB"] = how
        upgrade(q, bad, *args)
        wait_until("it stops", lambda: "upgrade: stopped" in said(q))
        line = [l for l in said(q).splitlines() if "stopped" in l][0]
        assert "the new replica" in line and "0 of 3 replaced" in line, line
        check("remaining replicas", len(pids_of(q)), 2)
        n.add(0)
        upgraded(q, PATH)  # the way back
        check("replaced", "done: 0 replicas" in said(q), True)
        end_well(q, n)
    check("drained", q.status, 0)


def test_a_build_whose_replicas_end():
    no_good("ends")


def test_a_build_whose_replicas_hang():
    no_good("hangs", "--upgrade-timeout", "1")


def test_one_that_ends_before_it_has_answered():
    """Its next incarnation gets the request that it did not answer."""
    with Build() as new, Quoind(PATH) as q:
        n = fill(q)
        pid = pids_of(q)[2]
        os.kill(pid, signal.SIGSTOP)
        upgrade(q, new)
        wait_until("it is adopted", lambda: "adopted 3" in said(q))
        n.add(0)
        os.kill(pid, signal.SIGKILL)
        wait_until("it is done", lambda: "upgrade: done" in said(q))
        end_well(q, n)
    check("drained", q.status, 0)


def test_who_left_is_not_brought_back():
    with Build() as new, Quoind(PATH) as q:
        n = fill(q)
        os.kill(pids_of(q)[2], signal.SIGTERM)
        wait_until("it has left", lambda: 2 not in pids_of(q))
        upgraded(q, new)
        check("replicas", sorted(pids_of(q)), [0, 1])
        n.add(0)
        n.add(1)
    check("drained", q.status, 0)
    # Nothing waited, so no replica was suspected meanwhile.
    assert "replica 1 leads, epoch 1: replica 0 handed over" in q.log, q.log


# ---- refusals: nothing has changed ----

def unchanged(q, n, before):
    check("processes", pids_of(q), before)
    check("supervisor", q.proc.poll(), None)
    n.add(1)


def test_refusals():
    with Quoind(PATH) as q:
        n = fill(q)
        before = pids_of(q)
        for args, why in ((["--databases", "3"], "databases 3 contradicts"),
                          (["--port", "0"], "give the --port"),
                          (["--port", str(q.port + 100)],
                           "no quoind runs there")):
            line = refused(q, "--upgrade", *args)
            assert why in line, line
            unchanged(q, n, before)
        end_well(q, n)
    with Quoind(PATH, replicas=1) as q:
        line = refused(q, "--upgrade")
        assert "cannot upgrade a single-replica server" in line, line
        check("it serves", q.client().call("SET", "a", "1"), b"OK")


def of_another(q, answer):
    """Its messages to a supervisor with this answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s, \
            open(door(q, "s.lock")) as lock:  # left by an earlier server
        fcntl.flock(lock, fcntl.LOCK_EX)
        at = lock.name[:-len(".lock")]
        if os.path.exists(at):
            os.unlink(at)
        s.bind(at)
        if answer is not None:
            s.listen()
        p = subprocess.Popen(q.cmd + ["--upgrade"], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE,
                             preexec_fn=end_with_parent)
        if answer is not None:
            at = s.accept()[0]
            at.recv(EVENT.size)
            for event in answer:
                at.send(EVENT.pack(*event))
            check("hung up, no START", at.recv(EVENT.size), b"")
        line = p.communicate()[1].decode()
        check("status of " + line, p.returncode, 2)
        check("one line of " + line, line.count("\n"), 1)
        return line


def test_versions():
    with Quoind(PATH) as q:
        pass
    line = of_another(q, [(KIND["ADOPT"], 0, 0, 0, VERSION + 1)])
    assert "another version (it speaks %d" % (VERSION + 1) in line, line
    outbox = 1  # kvs/control/formats.h
    line = of_another(q, [(KIND["ADOPT"], 0, 0, 0, VERSION),
                          (KIND["FORMAT"], 0, 0, 0, VERSION),
                          (KIND["FORMAT"], outbox, 0, 0, 99),
                          (KIND["START"], 0, 0, 0, 0)])
    assert "version 99 of the outbox format" in line, line
    line = of_another(q, [(KIND["FAILED"], 0, 0, -16, 0)])
    assert "is ending" in line, line
    line = of_another(q, None)
    assert "cannot hand over" in line, line


if __name__ == "__main__":
    main(sys.argv[4:], dict(globals()))
