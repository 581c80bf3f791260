"""Shared and separate state of replicas: each has its own copy, only shared
memory connects them, and a corrupt replica harms no other.

Usage: test_isolation.py QUOIND QUOIN [NAME...]

QN_TEST_KEYS=N    keys of the memory test (1000000)
QN_TEST_WRECKS=N  contents that a corrupt replica writes (6)
"""
import os
import re
import subprocess
import sys

from tests.process.lib.checks import agree, Background, check, main, wait_until
from tests.process.lib.info_view import info
from tests.process.lib.quoind import Client, Error, Quoind

PATH, QUOIN = sys.argv[1:3]
KEYS = int(os.environ.get("QN_TEST_KEYS", "1000000"))
WRECKS = int(os.environ.get("QN_TEST_WRECKS", "6"))


LOG_BYTES = 256 << 20  # batches that an outbox keeps at most

# ---- memory ----

def private_bytes(pid):
    """Anonymous memory that no other process maps."""
    with open("/proc/%d/smaps_rollup" % pid) as f:
        return int(re.search(r"^Pss_Anon:\s+(\d+)", f.read(), re.M)[1]) * 1024


def shared_memory(q):
    """Memory that any process of the server maps shared or has open: {(device,
    inode, name): allocated bytes}."""
    found = {}
    for pid in [q.proc.pid] + q.pids():
        base = "/proc/%d/" % pid
        paths = [base + "fd/" + fd for fd in os.listdir(base + "fd")]
        with open(base + "maps") as f:
            paths += [base + "map_files/" + line.split()[0] for line in f
                      if line.split()[1][3] == "s"]
        for path in paths:
            try:
                name, st = os.readlink(path), os.stat(path)
            except FileNotFoundError:
                continue  # this listing's own descriptor, or just closed
            if name.startswith(("/memfd:", "/dev/shm", "/SYSV")):
                found[st.st_dev, st.st_ino, name] = st.st_blocks * 512
    return found


def test_each_replica_holds_the_keys_in_private_memory():
    with Quoind(PATH) as q:
        pids = q.pids()
        shared = shared_memory(q)
        check("an outbox each, and the commons", len(shared), len(pids) + 1)
        before = [private_bytes(pid) for pid in pids]
        subprocess.run(
            [QUOIN, "load", "--to", "127.0.0.1:%d" % q.port, "--preload",
             "--keys", str(KEYS), "--key-size", "8", "--value-size", "16",
             "--connections", "6", "--pipeline", "64", "--requests", "1",
             "--warmup", "0"],
            check=True, stdout=subprocess.DEVNULL)
        agree(q)
        for i in range(3):
            check("size", q.client(i).call("DBSIZE"), KEYS)
        now = shared_memory(q)
        check("shared memory", now.keys(), shared.keys())
        for name, size in shared.items():
            assert now[name] - size <= LOG_BYTES, "%s: %d more" % (
                name, now[name] - size)
        each = [(private_bytes(pid) - b) / KEYS
                for pid, b in zip(pids, before)]
        for i, n in enumerate(each):
            assert n >= 8 + 16, "replica %d has %.0f bytes a key" % (i, n)
        return "%.0f bytes a key in each of %d replicas" % (
            sum(each) / len(each), len(each))


# ---- sockets ----

def sockets_of(pid):
    """Inodes."""
    found = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            name = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except FileNotFoundError:
            continue
        if name.startswith("socket:["):
            found.add(int(name[8:-1]))
    return found


def unix_pairs():
    """Connected Unix sockets, {inode: the peer's inode}."""
    out = subprocess.run(["ss", "-x", "-a", "-H"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    pairs = {}
    for line in out.splitlines():
        # Netid State Recv-Q Send-Q Path Inode Path Inode
        local, peer = line.split()[-3], line.split()[-1]
        if local.isdigit() and peer.isdigit() and peer != "0":
            pairs[int(local)] = int(peer)
    return pairs


def tcp_pairs():
    """The same for TCP, from /proc/net."""
    inode_of, peer_of = {}, {}
    for name in "tcp", "tcp6":
        try:
            with open("/proc/net/" + name) as f:
                rows = [line.split() for line in f.readlines()[1:]]
        except FileNotFoundError:
            continue
        for row in rows:
            inode_of[row[1], row[2]] = int(row[9])
            peer_of[int(row[9])] = row[2], row[1]
    return {inode: inode_of[ends] for inode, ends in peer_of.items()
            if ends in inode_of and inode != 0}


def listening(port):
    """Inodes of the TCP sockets that listen there."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return {int(row[9]) for row in rows
            if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}


def test_no_replica_has_a_socket_to_another():
    for replicas in 3, 5:
        with Quoind(PATH, replicas=replicas) as q:
            clients = [q.client(i) for i in range(replicas)]
            for i, c in enumerate(clients):
                c.pipeline(*[("SET", "key%d" % k, i) for k in range(1000)])
            agree(q)
            owners = {}
            pids = q.pids()
            for pid in pids + [q.proc.pid, os.getpid()]:
                for inode in sockets_of(pid):
                    owners.setdefault(inode, set()).add(pid)
            links = set()
            for a, b in (*unix_pairs().items(), *tcp_pairs().items()):
                for one in owners.get(a, ()):
                    links |= {(one, two) for two in owners.get(b, ())}
            # Check of the method: the sockets of the supervisor and of our
            # clients are visible.
            for pid in pids:
                assert (q.proc.pid, pid) in links, "ss shows no control socket"
                assert (os.getpid(), pid) in links, "a client is not seen"
            between = {(a, b) for a, b in links if a in pids and b in pids}
            check("sockets between replicas", between - {(p, p) for p in pids},
                  set())
            # A socket that two replicas hold could connect them too: the
            # listening ones, none of them connected.
            common = {inode for inode, who in owners.items()
                      if len(who & set(pids)) > 1}
            doors = listening(q.port)
            check("doors", len(doors), int(info(q, 0)["seats"]))
            check("listening sockets that not all hold", doors - common, set())
            check("other sockets that two hold", common - doors, set())
            linked = common & (set(unix_pairs()) | set(tcp_pairs()))
            check("connected", linked, set())


# ---- a corrupt writer ----

def mappings(pid):
    """Inodes of the shared memory that it can write, and of the memory that it
    can only read."""
    modes = {"rw-s": set(), "r--s": set()}
    with open("/proc/%d/maps" % pid) as f:
        for line in f:
            fields = line.split(None, 5)
            if fields[1] in modes and "memfd" in line:
                modes[fields[1]].add(fields[4])
    return modes["rw-s"], modes["r--s"]


SEEDS = (0, -1, 1, 2, 3, 4)[:WRECKS]  # zeros, ones, garbage


class Leads(Exception):
    """On a busy machine the victim may have become the leader; the accept
    register is in its reach then, and the group may stop."""


def wreck(c, seed):
    c.send(Client.encode("DEBUG", "WRECK", seed))
    try:
        reply = c.reply()
    except (ConnectionError, OSError):
        return  # it is gone
    assert isinstance(reply, Error) and "leads" in str(reply), reply
    raise Leads


def with_server(run, *args, **opts):
    """run(q, *args), with another server as long as the victim leads."""
    while True:
        try:
            with Quoind(PATH, **opts) as q:
                return run(q, *args)
        except Leads:
            continue


def write_and_read(q, replicas, first, count):
    """Writes at one, read at the next; `count` of them."""
    cs = [q.client(i) for i in replicas]
    for i in range(first, first + count):
        c, d = cs[i % len(cs)], cs[(i + 1) % len(cs)]
        check("set", c.call("SET", "k%d" % i, i), b"OK")
        check("get", d.call("GET", "k%d" % i), b"%d" % i)
    for c in cs:
        c.close()


def pipelines(q, replica, count):
    c = q.client(replica)
    for i in range(count):
        got = c.pipeline(*[("INCR", "n%d" % (k % 10)) for k in range(100)])
        check("increments", [x for x in got if not isinstance(x, int)], [])


def wreck_learner(q, seed):
    """During writes at all replicas. With five, the corrupt one has a child of
    the tree below it."""
    victim = 2
    others = [i for i in range(q.replicas) if i != victim]
    write_and_read(q, range(q.replicas), 0, 200)
    own, foreign = mappings(q.pids()[victim])
    check("writable: its outbox and the commons", len(own), 2)
    check("others' outboxes", len(foreign - own), q.replicas - 1)
    check("pages of the commons are only read", len(foreign & own), 1)
    c = q.client(victim)
    jobs = [Background(pipelines, q, i, 100) for i in others]
    for job in jobs:
        job.start()
    try:
        wreck(c, seed)
    finally:
        for job in jobs:
            job.finish()
    write_and_read(q, others, 200, 400)
    agree(q, others)
    sums = {sum(int(q.client(i).call("GET", "n%d" % n)) for n in range(10))
            for i in others}
    check("increments", sums, {100 * 100 * len(others)})


def test_a_corrupt_replica_harms_no_other():
    for replicas, kind in (3, "memory"), (5, "memory"), (3, "process"):
        for seed in SEEDS:
            with_server(wreck_learner, seed, replicas=replicas,
                        args=["--acceptor", kind, "--restart", "no"])


def test_a_corrupt_replica_comes_back():
    """It finds its own pages of the commons overwritten, too: it may not vote,
    but has all data."""
    def comes_back(q, seed):
        pid = q.pids()[2]
        wreck_learner(q, seed)
        wait_until("it is back", lambda: is_online(q, 2, pid))
        agree(q)

    for seed in SEEDS[:3]:
        with_server(comes_back, seed)


def test_a_leader_refuses_to_be_wrecked():
    with Quoind(PATH) as q:
        c = q.client(0)
        got = c.call("DEBUG", "WRECK", 1)
        assert isinstance(got, Error) and "leads" in str(got), got
        check("it serves", c.call("SET", "a", "1"), b"OK")


def is_online(q, replica, pid_before):
    """A later incarnation of it is complete."""
    try:
        text = q.client(replica).call("INFO", "quoin").decode()
    except OSError:
        return False
    m = re.search(r"^replica%d:state=online,pid=(\d+)" % replica, text, re.M)
    return m is not None and int(m[1]) != pid_before


# A leader of the memory acceptor can write the accept register, so a corrupt one
# may stop the group. With an acceptor process no replica can.

def wreck_one(victim):
    """No other replica crashes or gives wrong replies, and the others
    continue."""
    others = [i for i in range(3) if i != victim]
    for seed in SEEDS:
        with Quoind(PATH, args=["--acceptor", "process", "--restart",
                                "no"]) as q:
            write_and_read(q, range(3), 0, 200)
            wreck(q.client(victim), seed)
            for i in others:
                got = q.client(i).pipeline(*[("GET", "k%d" % k)
                                             for k in range(200)])
                check("reads", got, [b"%d" % k for k in range(200)])
            write_and_read(q, others, 200, 100)
            agree(q, others)
            wait_until("two of three are left", lambda: len(q.pids()) == 2)


def test_a_wrecked_leader_is_replaced():
    wreck_one(0)


def test_a_wrecked_acceptor_is_replaced():
    """Its accepted values are garbage, and so is the read index."""
    wreck_one(1)


main(sys.argv[3:], globals())
