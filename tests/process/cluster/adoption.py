"""Supervisors that start and end over a running group: shared by its tests."""
import ctypes
import glob
import os
import re
import signal
import socket
import struct
import subprocess
import tempfile

from tests.process.lib.checks import agree, check, shares, wait_until
from tests.process.lib.quoind import end_with_parent
from tests.process.lib.info_view import look

# ADOPT, FORMAT and FAILED: kind, node or format, incarnation, oldest version or
# error, version
EVENT = struct.Struct("=IIQqQ")  # kvs/control/control_protocol.h
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..",
                      "..", "kvs", "control")


def kinds():
    """{name: number} of the messages, as the enum of kvs/control/control_protocol.h has
    them."""
    with open(os.path.join(SOURCE, "control_protocol.h")) as f:
        text = f.read()
    text = re.search(r"enum qn_control_kind {(.*?)};", text, re.S).group(1)
    return {name: int(number)
            for name, number in re.findall(r"QN_CTL_(\w+) = (\d+)", text)}


def version():
    """Of the hand-over."""
    with open(os.path.join(SOURCE, "adopt.h")) as f:
        return int(re.search(r"QN_ADOPT_VERSION (\d+)u", f.read()).group(1))


def door(q, role):
    """The socket of a replica for adopters; or of another role:
    kvs/config/rundir.h."""
    where = "/run/quoin" if os.geteuid() == 0 else \
        "/tmp/quoin-%d" % os.geteuid()
    if isinstance(role, int):
        role = "r%d" % role
    found = glob.glob("%s/127.0.0.1-%d-*.%s" % (where, q.port, role))
    check("doors", len(found), 1)
    return found[0]


# ---- processes ----

def pids_of(q):
    """{replica: pid} of the living ones, with any parent."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid) as f:
                name = f.read().strip()
            with open("/proc/%s/stat" % pid) as f:
                state = f.read().rpartition(")")[2].split()[0]
            with open("/proc/%s/cmdline" % pid) as f:
                words = f.read().split("\0")
        except OSError:
            continue  # it has just ended
        if name.startswith("quoind-") and state not in "ZX" and \
                str(q.port) in words:
            found[int(name[7:])] = int(pid)
    return found


def kill_replicas(q, *replicas):
    """All of them are stopped first: none answers another's death."""
    pids = pids_of(q)
    for sig in signal.SIGSTOP, signal.SIGKILL:
        for i in replicas:
            os.kill(pids[i], sig)
    for i in replicas:
        wait_until("replica %d is gone" % i,
                   lambda: not os.path.exists("/proc/%d" % pids[i]) or
                   pids_of(q).get(i) != pids[i])


def kill_supervisor(q):
    q.proc.kill()
    q.proc.wait()


def narrow(pid):
    """Gives the control sockets of that supervisor room for few messages only.
    """
    pidfd_getfd = 438
    held = os.pidfd_open(pid)
    count = 0
    for fd in os.listdir("/proc/%d/fd" % pid):
        own = ctypes.CDLL(None, use_errno=True).syscall(
            pidfd_getfd, held, int(fd), 0)
        if own < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        try:
            with socket.socket(fileno=own) as s:
                if s.type == socket.SOCK_SEQPACKET:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
                    count += 1
        except OSError:  # no socket
            os.close(own)
    os.close(held)
    return count


def launch(q, *args):
    """A new quoind; its line of readiness goes to q.ready."""
    q.ready = tempfile.TemporaryFile()
    return subprocess.Popen(q.cmd + list(args), stdout=q.ready,
                            stderr=q.errors, preexec_fn=end_with_parent)


def start_again(q):
    """@return its line of readiness."""
    q.proc = launch(q)
    wait_until("it is ready", lambda: q.proc.poll() is not None or
               b"\n" in os.pread(q.ready.fileno(), 1 << 16, 0))
    return os.pread(q.ready.fileno(), 1 << 16, 0)


def adopt(q, count):
    """Starts it again: it reports that it adopted this many."""
    line = start_again(q)
    assert b"adopted %d replica" % count in line, line


def refused(q, *args):
    """It ends with status 2 and one line. @return the line."""
    p = subprocess.run(q.cmd + list(args), stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, preexec_fn=end_with_parent)
    lines = p.stderr.decode().splitlines()
    check("status of %r" % lines, p.returncode, 2)
    check("one line of %r" % lines, len(lines), 1)
    return lines[0]


# ---- acknowledged writes are never lost ----

class Counter:
    """Increments at one replica; acknowledged ones are kept."""

    def __init__(self, q):
        self.q, self.done = q, 0

    def add(self, replica, count=100):
        c = self.q.client(replica)
        for _ in range(count):
            got = c.call("INCR", "counter")
            check("counter", got, self.done + 1)
            self.done = got
        c.close()

    def check_everywhere(self):
        for i in range(self.q.replicas):
            c = self.q.client(i)
            check("at %d" % i, c.call("GET", "counter"), b"%d" % self.done)
            check("keys at %d" % i, c.pipeline(
                *[("GET", "key%d" % k) for k in range(500)]),
                [b"%d" % k for k in range(500)])
            c.close()


def fill(q):
    c = q.client(0)
    check("fill", set(c.pipeline(*[("SET", "key%d" % i, i)
                                   for i in range(500)])), {b"OK"})
    c.close()
    n = Counter(q)
    n.add(0)
    return n


def complete(q):
    """All replicas are present and online."""
    def there():
        v = look(q, range(q.replicas))
        pids = pids_of(q)
        return v is not None and len(pids) == q.replicas and v.current(pids)
    wait_until("all are online", there)


def end_well(q, n):
    complete(q)
    for i in range(q.replicas):
        n.add(i, 20)
    n.check_everywhere()
    if "--unixsocket" not in q.cmd:
        shares(q)
    agree(q)


def online(q, replica):
    """It is complete, as it reports itself."""
    v = look(q, [replica])
    return v is not None and v.online(replica)


def alone(q, replica):
    c = q.client(replica)
    wait_until("it knows", lambda: b"supervisor:down" in
               c.call("INFO", "quoin"))
    c.close()
