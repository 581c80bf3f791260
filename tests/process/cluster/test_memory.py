"""maxmemory: writes beyond it are refused, everything else continues, no
process ends.

Usage: test_memory.py QUOIND QUOIN [NAME...]
"""
import contextlib
import os
import re
import signal
import subprocess
import sys

from tests.process.lib.checks import agree, check, digests, main, wait_until
from tests.process.lib.quoind import Error, Quoind
from tests.process.lib.info_view import look, pids_of

PATH = sys.argv[1]
OOM = "OOM command not allowed when used memory > 'maxmemory'."
MIB = 1 << 20
VALUE = b"v" * (64 << 10)
# The allocator of a sanitizer has shadow memory, and keeps freed memory.
SANITIZED = "QN_TEST_KEYS" in os.environ
SMALL = ["--repl-backlog-size", "4mb", "--proto-max-bulk-len", "1mb"]


def memory(c):
    """INFO memory, numbers as such."""
    text = c.call("INFO", "memory").decode()
    return {k: int(v) if v.isdigit() else v for k, v in
            (line.split(":", 1) for line in text.split("\r\n") if ":" in line)}


def limit_of(q, replica=0):
    c = q.client(replica)
    limit = int(c.call("CONFIG", "GET", "maxmemory")[1])
    c.close()
    return limit


def write(c, first, count):
    """The number of accepted SETs, sent in groups of four; the others must
    return -OOM."""
    taken = 0
    for i in range(first, first + count, 4):
        for got in c.pipeline(*[("SET", "key%d" % (i + k), VALUE)
                                for k in range(4)]):
            assert got == b"OK" or str(got) == OOM, got
            taken += got == b"OK"
    return taken


def fill(q):
    """Through all replicas, until each has refused; then for some more time.
    """
    clients = [q.client(i) for i in range(q.replicas)]
    limit = limit_of(q)
    most = limit // len(VALUE)
    taken = at = 0
    while at < most + 3 * 64:
        for c in clients:
            taken += write(c, at, 16)
            at += 16
    assert most - 1 - most // 1000 <= taken <= most, (taken, most)
    for c in clients:
        check("one more", str(c.call("SET", "more", VALUE)), OOM)
        m = memory(c)
        check("maxmemory", m["maxmemory"], limit)
        assert m["used_memory_logical"] <= limit, m
        assert m["used_memory_logical"] > limit - len(VALUE) - 64, m
        assert m["used_memory"] * 2 < m["used_memory_all_replicas"], m
        check("policy", m["maxmemory_policy"], "noeviction")
        c.close()
    return taken


def goes_on(q, taken):
    """At a full server: commands that add no data; and after a DEL, a write.
    """
    for i in range(q.replicas):
        c = q.client(i)
        keys = "key%d" % i, "key%d" % (i + q.replicas)
        check("read", c.call("GET", keys[0]), VALUE)
        check("same length", c.call("SET", keys[0], VALUE), b"OK")
        check("longer", str(c.call("APPEND", keys[0], "more" * 16384)), OOM)
        check("del", c.call("DEL", keys[0]), 1)
        check("room", c.call("SET", keys[0], VALUE), b"OK")
        check("full", str(c.call("SET", "more", VALUE)), OOM)
        check("shorter", c.call("SET", keys[1], "1"), b"OK")
        check("small", c.call("INCR", keys[1]), 2)
        check("back", c.call("SET", keys[1], VALUE), b"OK")
        check("size", c.call("DBSIZE"), taken)
        c.close()
    check("digests", len(set(digests(q))), 1)


def kill_and_wait(q, replica):
    """Its next incarnation has the whole state. (An adopter is not its
    parent.)"""
    others = [i for i in range(q.replicas) if i != replica]
    pid = look(q, others).pid(replica)
    os.kill(pid, signal.SIGKILL)

    def back():
        view = look(q, others)
        return view is not None and not view.missing and \
            view.online(replica) and view.pid(replica) != pid
    wait_until("replica %d is back" % replica, back)


def test_writers_are_refused_and_the_rest_goes_on():
    with Quoind(PATH, args=["--maxmemory", "4mb"]) as q:
        goes_on(q, fill(q))


def test_with_the_process_acceptor():
    with Quoind(PATH, args=["--maxmemory", "4mb", "--acceptor", "process"]) \
            as q:
        goes_on(q, fill(q))


def test_a_killed_replica_comes_back_and_refuses():
    with Quoind(PATH, args=["--maxmemory", "8mb"]) as q:
        taken = fill(q)
        for victim in range(3):
            kill_and_wait(q, victim)
            c = q.client(victim)
            check("limit", limit_of(q, victim), 8 * MIB)
            check("refused", str(c.call("SET", "more", VALUE)), OOM)
            c.close()
        goes_on(q, taken)


def test_a_new_limit_is_that_of_all_and_stays():
    with Quoind(PATH, args=["--maxmemory", "1mb"]) as q:
        c = q.client(1)
        check("refused", write(c, 0, 32), 15)
        check("set", c.call("CONFIG", "SET", "maxmemory", "2mb"), b"OK")
        check("more", write(c, 32, 32), 16)
        kill_and_wait(q, 0)
        for i in range(3):
            wait_until("limit of %d" % i, lambda: limit_of(q, i) == 2 * MIB)
        check("digests", len(set(digests(q))), 1)
        check("lower", c.call("CONFIG", "SET", "maxmemory", "1kb"), b"OK")
        check("refused", str(c.call("SET", "a", "1")), OOM)
        check("all are there", c.call("DBSIZE"), 31)
        check("del", c.call("DEL", "key0"), 1)
        check("none", c.call("CONFIG", "SET", "maxmemory", "0"), b"OK")
        check("taken", write(c, 64, 32), 32)
        got = str(c.call("CONFIG", "SET", "maxmemory", "auto"))
        assert "memory value" in got or "inclusive" in got, got
        agree(q)


def test_an_adopter_keeps_the_limit():
    """The adopter keeps it despite its own option; and so does a replica that
    it starts."""
    with Quoind(PATH, args=["--maxmemory", "1mb"]) as q:
        c = q.client(1)
        check("refused", write(c, 0, 32), 15)
        check("set", c.call("CONFIG", "SET", "maxmemory", "2mb"), b"OK")
        os.kill(q.proc.pid, signal.SIGKILL)
        q.proc.wait()
        q.proc = subprocess.Popen(
            [a if a != "1mb" else "64mb" for a in q.cmd], stderr=q.errors,
            stdout=q.ready)
        wait_until("adopted", lambda: b"adopted 3 replicas" in
                   os.pread(q.ready.fileno(), 1 << 16, 0))
        kill_and_wait(q, 2)
        wait_until("limit", lambda: limit_of(q, 2) == 2 * MIB)
        check("digests", len(set(digests(q))), 1)
        check("refused", write(q.client(2), 32, 32), 16)


def anonymous(pid):
    """RssAnon, bytes."""
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"^RssAnon:\s+(\d+) kB$", f.read(), re.M)
                   .group(1)) << 10


def test_an_idle_server_gives_memory_back():
    """Of 160 MiB every tenth value remains, between the holes of the others.
    """
    if SANITIZED:
        return "skipped: under a sanitizer"
    count, left = 2560, 256
    with Quoind(PATH) as q:
        c = q.client(0)
        check("written", write(c, 0, count), count)
        pids = pids_of(q)
        for i, pid in pids.items():  # followers apply a moment later
            wait_until("replica %d has it all" % i,
                       lambda: anonymous(pid) > count * len(VALUE))
        for i in range(0, count, 10):
            check("del", c.call("DEL", *["key%d" % (i + k)
                                         for k in range(1, 10)]), 9)
        most = left * len(VALUE) * 5 // 4 + 72 * MIB
        for i, pid in pids.items():
            wait_until("replica %d has given back" % i,
                       lambda: anonymous(pid) < most)
        check("the same processes", pids_of(q), pids)
        check("values", [c.call("GET", "key%d" % i) == VALUE
                         for i in range(0, count, 640)], [True] * 4)
        agree(q)
    check("a line each", q.log.count("of free memory back to the system"), 3)
    return None


# ---- too little memory ------------------------------------------------------

@contextlib.contextmanager
def group(limit):
    """A memory cgroup below its own one, of either version; None if that is
    impossible."""
    with open("/proc/self/cgroup") as f:
        lines = [line.strip().split(":", 2) for line in f]
    ways = [("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
            for _, names, path in lines if "memory" in names.split(",")]
    ways += [(mount, path, "memory.max") for _, names, path in lines
             for mount in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
             if names == ""]
    for mount, path, name in ways:
        here = os.path.join(mount, path.strip("/"), "quoin-%d" % os.getpid())
        try:
            os.mkdir(here)
        except OSError:
            continue
        try:
            with open(os.path.join(here, name), "w") as f:
                f.write(str(limit))
        except OSError:
            os.rmdir(here)
            continue
        try:
            yield here
        finally:
            wait_until("the group is empty", lambda: not open(
                os.path.join(here, "cgroup.procs")).read())
            os.rmdir(here)
        return
    yield None


def killed_in(here):
    for name in ("memory.oom_control", "memory.events"):
        with contextlib.suppress(FileNotFoundError):
            with open(os.path.join(here, name)) as f:
                m = re.search(r"^oom_kill (\d+)$", f.read(), re.M)
                if m:
                    return int(m.group(1))
    return 0


def bounded(before, args=()):
    q = Quoind(PATH, args=[*SMALL, *args])
    q.cmd = ["/bin/sh", "-c", before + ' && exec "$@"', "sh", *q.cmd]
    return q


def survives(q):
    """Writes until memory is full, then more; the same processes live."""
    pids = pids_of(q)
    taken = fill(q)
    check("the same processes", pids_of(q), pids)
    goes_on(q, taken)
    kill_and_wait(q, 1)
    check("refused", str(q.client(1).call("SET", "more", VALUE)), OOM)
    goes_on(q, taken)
    check("no other ended", [pids_of(q)[i] for i in (0, 2)],
          [pids[i] for i in (0, 2)])


def test_in_a_memory_cgroup():
    with group(256 * MIB) as here:
        if here is None or SANITIZED:
            return "skipped: %s" % ("under a sanitizer" if SANITIZED else
                                    "no memory cgroup can be made here")
        with bounded("echo $$ > %s/cgroup.procs" % here) as q:
            log = q.log_so_far()
            assert "left by the control group" in log, log
            assert MIB < limit_of(q) < 64 * MIB, limit_of(q)
            survives(q)
            check("killed by the kernel", killed_in(here), 0)
    return None


def needed_address_space(args):
    """MiB, from the error text."""
    q = bounded("ulimit -v %d" % (40 << 10), args)
    got = subprocess.run(q.cmd, stderr=subprocess.PIPE, timeout=60)
    q.ports.close()
    check("status", got.returncode, 2)
    said = got.stderr.decode()
    check("one line", said.count("\n"), 1)
    m = re.search(r"allowed by ulimit -v, .* which needs (\d+) MiB", said)
    assert m, said
    return int(m.group(1))


def test_under_a_limit_of_address_space():
    if SANITIZED:
        return "skipped: under a sanitizer"
    for args in ([], ["--acceptor", "process"]):
        mib = needed_address_space(args) + 64
        with bounded("ulimit -v %d" % (mib << 10), args) as q:
            log = q.log_so_far()
            assert "allowed by ulimit -v" in log, log
            assert MIB < limit_of(q) < 64 * MIB, limit_of(q)
            survives(q)
    return None


main(sys.argv[3:], globals())
