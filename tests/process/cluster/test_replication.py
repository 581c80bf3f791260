"""One server to the outside: every write is read at every replica, in order,
and INFO and CLIENT cover all replicas.

Usage: test_replication.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import socket
import sys
import time

from tests.process.lib.checks import agree, check, main, wait_until, waits
from tests.process.lib.quoind import Client, Error, Quoind

PATH = sys.argv[1]


def test_write_is_seen_on_every_replica():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for i in range(300):
            check("set", cs[i % 3].call("SET", "k%d" % i, i), b"OK")
            for c in cs:  # linearizable: immediately, everywhere
                check("get", c.call("GET", "k%d" % i), b"%d" % i)
        check("size", [c.call("DBSIZE") for c in cs], [300] * 3)
        agree(q)
    check("exit status", q.status, 0)


STREAM = (("SET", "a", 1), ("GET", "a"), ("SET", "a", 2), ("GET", "a"),
          ("INCR", "n"), ("GET", "n"), ("INCR", "n"), ("PING",), ("GET", "n"),
          ("FOO",), ("APPEND", "a", "x"), ("GET", "a"))
ANSWERS = [b"OK", b"1", b"OK", b"2", 1, b"1", 2, b"PONG", b"2", True, 2, b"2x"]


def answers(q, replica, cuts):
    """The stream in pieces, each of which the replica reads before the next is
    sent: a ping on another connection shows that it has read."""
    c, other = q.client(replica), q.client(replica)
    stream = b"".join(Client.encode(*command) for command in STREAM)
    for pieces in cuts(stream):
        c.call("DEL", "a", "n")
        for piece in pieces:
            c.send(piece)
            other.call("PING")
        got = [c.reply() for _ in STREAM]
        got[9] = isinstance(got[9], Error)
        check("%r at replica %d" % (pieces, replica), got, ANSWERS)


def one_cut(stream):
    return [[stream[:i], stream[i:]] for i in range(1, len(stream))]


def byte_by_byte(stream):
    return [[stream[i:i + n] for i in range(0, len(stream), n)]
            for n in (1, 2, 3, 5, 7, 11, 31, len(stream))]


def environment(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        return dict(e.split(b"=", 1) for e in f.read().split(b"\0") if e)


def test_asks_for_huge_pages_where_they_come_by_request():
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as f:
        asked = b"glibc.malloc.hugetlb=1" if "[madvise]" in f.read() else None
    os.environ.pop("GLIBC_TUNABLES", None)
    for said, expected in (None, asked), ("glibc.malloc.hugetlb=0",
                                          b"glibc.malloc.hugetlb=0"):
        if said is not None:
            os.environ["GLIBC_TUNABLES"] = said
        with Quoind(PATH, replicas=1) as q:
            check("tunables", environment(q.proc.pid).get(b"GLIBC_TUNABLES"),
                  expected)
            with open("/proc/%d/comm" % q.proc.pid) as f:
                check("name", f.read(), "quoind\n")
    del os.environ["GLIBC_TUNABLES"]


def test_pipelines_in_every_cut():
    with Quoind(PATH) as q:
        for replica in range(3):
            answers(q, replica, one_cut)
            answers(q, replica, byte_by_byte)


def test_two_cuts_of_writes_and_reads_of_one_key():
    commands = STREAM[:4]
    stream = b"".join(Client.encode(*c) for c in commands)
    with Quoind(PATH) as q:
        for replica in range(3):
            c, other = q.client(replica), q.client(replica)
            for i in range(1, len(stream), 3):
                for j in range(i + 1, len(stream)):
                    for piece in stream[:i], stream[i:j]:
                        c.send(piece)
                        other.call("PING")
                    c.send(stream[j:])
                    check("cuts %d, %d at replica %d" % (i, j, replica),
                          [c.reply() for _ in commands], ANSWERS[:4])


def test_pipelines_of_increments_count():
    """Pipelines at all replicas at the same time: the GET behind an INCR
    returns its result or a later one, and no number is returned twice."""
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        seen = []
        for depth in range(1, 60):
            request = b"".join(Client.encode("INCR", "n") +
                               Client.encode("GET", "n") for _ in range(depth))
            for c in cs:
                c.send(request)
            for c in cs:
                got = [c.reply() for _ in range(2 * depth)]
                for count, value in zip(got[::2], got[1::2]):
                    check("the GET behind it", int(value), count)
                seen += got[::2]
        check("counts", sorted(seen), list(range(1, len(seen) + 1)))
        agree(q)


def test_held_learns():
    """Also the test of the read index: a replica that does not receive
    decisions knows only from it that its value is old."""
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for round_ in range(20):
            check("set", cs[round_ % 2].call("SET", "a", "old"), b"OK")
            check("get", cs[2].call("GET", "a"), b"old")
            check("hold", cs[2].call("DEBUG", "HOLD-LEARNS", 1), b"OK")
            check("set", cs[round_ % 2].call("SET", "a", "new"), b"OK")
            for c in cs[:2]:
                check("get elsewhere", c.call("GET", "a"), b"new")
            cs[2].send(Client.encode("GET", "a"))
            waits("a linearizable read that would be old", [cs[2]], q, [2])
            other = q.client(2)
            check("release", other.call("DEBUG", "HOLD-LEARNS", 0), b"OK")
            check("get", cs[2].reply(), b"new")
            other.close()


def test_held_learns_with_local_reads():
    with Quoind(PATH, args=("--consistency", "local")) as q:
        cs = [q.client(i) for i in range(3)]
        cs[0].call("SET", "a", "old")
        wait_until("old", lambda: cs[2].call("GET", "a") == b"old")
        cs[2].call("DEBUG", "HOLD-LEARNS", 1)
        check("set", cs[0].call("SET", "a", "new"), b"OK")
        for _ in range(100):
            check("local read", cs[2].call("GET", "a"), b"old")
            check("where it was written", cs[0].call("GET", "a"), b"new")
        cs[2].call("DEBUG", "HOLD-LEARNS", 0)
        wait_until("new", lambda: cs[2].call("GET", "a") == b"new")


def test_bursts_from_every_replica_are_answered():
    """After each burst nothing is sent: a replica that misses a timer, or a
    wake-up for free room, would leave it unanswered."""
    for _ in range(3):
        with Quoind(PATH) as q:
            for replica in range(3):
                c = q.client(replica)
                for burst in range(12):
                    got = c.pipeline(*[("SET", "key%d" % k, "v" * 1000)
                                       for k in range(burst * 300)])
                    check("burst", set(got) - {b"OK"}, set())


def test_big_values():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for size in (16383, 16384, 65535, 65536, 300000, 5 << 20):
            for i, c in enumerate(cs):
                value = bytes([97 + i]) * size
                check("set %d" % size, c.call("SET", "big", value), b"OK")
                for d in cs:
                    assert d.call("GET", "big") == value, "size %d" % size
        agree(q)


def info(c, *sections):
    """INFO as a dict of texts."""
    lines = c.call("INFO", *sections).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def clients(c, *filters):
    """CLIENT LIST as dicts."""
    text = c.call("CLIENT", "LIST", *filters).decode()
    return [dict(f.split("=", 1) for f in line.split(" "))
            for line in text.splitlines()]


def patiently(ask, complete):
    """Asks until the answer is complete: on a busy machine a replica may be
    later than the 100 ms after which it is left out."""
    got = []

    def asked():
        got.append(ask())
        return complete(got[-1])
    wait_until("a complete answer", asked)
    return got[-1]


def test_info_and_clients_mean_all_replicas():
    for replicas in (1, 3, 5):
        with Quoind(PATH, replicas=replicas) as q:
            cs = [q.client(i) for i in range(replicas)]
            for i, c in enumerate(cs):
                c.call("CLIENT", "SETNAME", "n%d" % i)
                c.call("SET", "k%d" % i, i)
                c.call("GET", "k%d" % i)
                c.call("GET", "nobody")
                c.call("INCRBY", "k0", "x")
                c.call("GET")
            all_ = [patiently(lambda: info(c, "everything"),
                              lambda a: a["replicas_missing"] == "")
                    for c in cs]
            pids = {int(a["process_id"]) for a in all_}
            check("a pid of its own each", pids, set(q.pids()))
            check("one run_id", len({a["run_id"] for a in all_}), 1)
            check("digits", len(all_[0]["run_id"]), 40)
            for a in all_:
                check("missing", a["replicas_missing"], "")
                check("clients", a["connected_clients"], str(replicas))
                check("blocked", a["blocked_clients"], "0")
                check("hits", a["keyspace_hits"], str(replicas))
                check("misses", a["keyspace_misses"], str(replicas))
                check("errors", a["errorstat_ERR"],
                      "count=%d" % (2 * replicas))
                check("port", a["tcp_port"], str(q.port))
                check("keys", a["db0"].split(",")[0], "keys=%d" % replicas)
                get = dict(f.split("=") for f in a["cmdstat_get"].split(","))
                check("calls", get["calls"], str(2 * replicas))
                incr = dict(f.split("=")
                            for f in a["cmdstat_incrby"].split(","))
                check("failed", incr["failed_calls"], str(replicas))
                check("rejected", [get["rejected_calls"], get["failed_calls"],
                                   incr["rejected_calls"]],
                      [str(replicas), "0", "0"])
                for i in range(replicas):
                    assert "state=online" in a["replica%d" % i], a
            ids = set()
            for c in cs:
                lines = patiently(lambda: clients(c),
                                  lambda a: len(a) == replicas)
                check("names", sorted(x["name"] for x in lines),
                      ["n%d" % i for i in range(replicas)])
                ids |= {x["id"] for x in lines}
            check("ids", len(ids), replicas)


def test_the_end_of_a_client_in_wait_is_noticed():
    """Its socket is not read meanwhile. One that has only closed its half still
    gets a count; clients that stay wait on, more of them than one system call
    looks at."""
    with Quoind(PATH) as q:
        watch = q.client(0)

        def blocked(count):
            wait_until("%d blocked" % count, lambda: info(
                watch, "clients")["blocked_clients"] == str(count))
        idle = [q.client(0) for _ in range(150)]
        for c in idle:
            c.send(Client.encode("WAIT", 9, 0))
        blocked(150)
        before = int(info(watch, "clients")["connected_clients"])
        for c in idle[:140]:
            c.close()
        blocked(10)
        wait_until("they are gone", lambda: int(
            info(watch, "clients")["connected_clients"]) == before - 140)
        idle[140].sock.shutdown(socket.SHUT_WR)
        check("a count", idle[140].reply(), 2)
        blocked(9)
        for c in idle[140:]:
            c.close()


def test_client_kill_reaches_every_replica():
    with Quoind(PATH) as q:
        killer, other = q.client(0), q.client(1)
        oid = other.call("CLIENT", "ID")
        check("listed", [x["id"] for x in clients(killer, "ID", oid)],
              [str(oid)])
        check("kill", killer.call("CLIENT", "KILL", "ID", oid), 1)
        assert closed(other), "it lives"
        check("again", killer.call("CLIENT", "KILL", "ID", oid), 0)
        # A waiting client is released.
        waits = q.client(2)
        wid = waits.call("CLIENT", "ID")
        waits.send(Client.encode("WAIT", 9, 0))
        wait_until("blocked", lambda:
                   info(killer, "clients")["blocked_clients"] == "1")
        check("kill", killer.call("CLIENT", "KILL", "ID", wid), 1)
        assert closed(waits), "it waits"
        check("blocked", info(killer, "clients")["blocked_clients"], "0")
        # The requesting client gets its reply before the connection closes;
        # later requests are dropped.
        me = killer.call("CLIENT", "ID")
        killer.send(Client.encode("CLIENT", "KILL", "ID", me, "SKIPME", "no") +
                   Client.encode("PING"))
        check("self", killer.reply(), 1)
        assert closed(killer), "it is still open"


def closed(c):
    try:
        c.reply()
        return False
    except (ConnectionError, OSError):
        return True


def test_pipelines_around_questions_keep_their_order():
    with Quoind(PATH) as q:
        c = q.client(1)
        got = c.pipeline(("SET", "a", 1), ("INFO", "server"), ("GET", "a"),
                         ("CLIENT", "LIST"), ("INCR", "a"),
                         ("CLIENT", "KILL", "ID", 1 << 40), ("GET", "a"),
                         ("CLIENT", "KILL", "1.2.3.4:5"), ("PING",))
        check("order", got[:1] + got[2:3] + got[4:7] + got[8:],
              [b"OK", b"1", 2, 0, b"2", b"PONG"])
        check("old form", str(got[7]), "ERR No such client")
        c.send(Client.encode("CLIENT", "REPLY", "SKIP") +
               Client.encode("INFO") + Client.encode("PING"))
        check("skipped", c.reply(), b"PONG")


def test_a_silent_replica_is_named():
    """A new incarnation would be back before the check."""
    with Quoind(PATH, args=["--restart", "no"]) as q:
        cs = [q.client(i) for i in range(3)]
        # The connections of the readiness check have been forgotten.
        wait_until("three", lambda: len(clients(cs[0])) == 3)
        os.kill(q.pids()[2], signal.SIGSTOP)
        check("stopped", info(cs[0], "quoin")["replicas_missing"], "2")
        check("left out", len(clients(cs[0])), 2)
        os.kill(q.pids()[2], signal.SIGCONT)
        wait_until("no replica missing", lambda:
                   info(cs[0], "quoin")["replicas_missing"] == "")
        wait_until("back", lambda: len(clients(cs[0])) == 3)
        os.kill(q.pids()[2], signal.SIGKILL)
        wait_until("one missing", lambda:
                   info(cs[0], "quoin")["replicas_missing"] == "2")
        check("left out", len(clients(cs[1])), 2)


def reset(c):
    """On a busy machine a replica may be too late to answer."""
    wait_until("all have reset",
               lambda: c.call("CONFIG", "RESETSTAT") == b"OK")


def test_a_long_pipeline_lets_others_in():
    """Both have sent everything when the replica resumes; the INFO of the
    second one shows the progress of the first one at its turn."""
    many = 15000
    with Quoind(PATH) as q:
        a, b = q.client(0), q.client(0)
        check("ping", (a.call("PING"), b.call("PING")), (b"PONG", b"PONG"))
        reset(b)
        pid = q.pids()[0]
        os.kill(pid, signal.SIGSTOP)
        a.send(b"PING\r\n" * many)
        b.send(Client.encode("INFO", "commandstats"))
        os.kill(pid, signal.SIGCONT)
        stats = b.reply().decode()
        calls = int(stats.split("cmdstat_ping:calls=")[1].split(",")[0])
        assert calls < many / 2, "%d of %d came before" % (calls, many)
        for _ in range(many):
            check("ping", a.reply(), b"PONG")


def test_a_burst_of_connections_is_answered():
    """More sockets than one iteration reads, and more replies than it writes.
    """
    with Quoind(PATH) as q:
        cs = [q.client(0) for _ in range(600)]
        check("set", cs[0].call("SET", "a", 1), b"OK")
        pid = q.pids()[0]
        for _ in range(3):
            os.kill(pid, signal.SIGSTOP)
            for c in cs:
                c.send(Client.encode("GET", "a"))
            os.kill(pid, signal.SIGCONT)
            for c in cs:
                check("get", c.reply(), b"1")


def test_turns_are_shown_and_reset():
    with Quoind(PATH) as q:
        c = q.client(1)
        c.call("SET", "a", 1)
        check("calls", "cmdstat_set" in info(c, "commandstats"), True)
        wait_until("all are shown", lambda: all(
            info(c, "quoin").get("turns%d" % i, "").startswith("turn_usec_p99=")
            for i in range(3)))
        reset(c)
        check("none", "cmdstat_set" in info(c, "commandstats"), False)
        os.kill(q.pids()[2], signal.SIGSTOP)
        got = str(c.call("CONFIG", "RESETSTAT"))
        assert "of the replicas did not answer; see replicas_missing" in got
        os.kill(q.pids()[2], signal.SIGCONT)


def test_a_flush_gives_memory_back_without_traffic():
    def used(c):
        shown = info(c, "quoin")
        return [int(shown[r].split("used_memory=")[1].split(",")[0])
                for r in ("replica0", "replica1", "replica2") if r in shown]
    with Quoind(PATH) as q:
        c = q.client(0)
        for i in range(0, 100000, 500):
            c.pipeline(*[("SET", "key%d" % k, "v" * 100)
                         for k in range(i, i + 500)])
        full = used(c)
        assert min(full) > 100000 * 100, full
        c.call("FLUSHALL")
        # Each check is an iteration, too, which gives back 256 blocks.
        for _ in range(40):
            left = used(c)
            if max(left) < 2000000:
                break
            time.sleep(0.05)
        assert max(left) < 2000000, left


def test_an_option_is_set_once():
    with Quoind(PATH) as q:
        got = q.client(1).call("CONFIG", "SET", "max-args", 2000,
                               "MAX-ARGS", 3000)
        check("twice", str(got), "ERR CONFIG SET failed (possibly related to "
              "argument 'MAX-ARGS') - duplicate parameter")


main(sys.argv[3:], globals())
