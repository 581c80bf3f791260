"""It is what it says: replication, consistency and isolation, on real
processes. Usage: test_replication.py QUOIND [NAME...]"""
import os
import random
import signal
import sys
import threading
import time

from quoind import Client, Error, Quoind

PATH = sys.argv[1]


def check(what, got, want):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


def digests(q):
    """(position, digest) of each replica, once all stand at one position."""
    clients = [q.client(i) for i in range(q.replicas)]
    for _ in range(2000):
        all_ = [c.call("DEBUG", "DIGEST").split() for c in clients]
        if len({a[0] for a in all_}) == 1:
            for c in clients:
                c.close()
            return [a[1] for a in all_]
        time.sleep(0.005)
    raise AssertionError("positions do not meet: %r" % all_)


def test_write_is_seen_on_every_replica():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for i in range(300):
            check("set", cs[i % 3].call("SET", "k%d" % i, i), b"OK")
            for c in cs:  # linearizable: at once, everywhere
                check("get", c.call("GET", "k%d" % i), b"%d" % i)
        check("size", [c.call("DBSIZE") for c in cs], [300] * 3)
        check("digests", len(set(digests(q))), 1)
    check("exit status", q.status, 0)


def test_pipelines_in_every_cut():
    commands = [("SET", "a", 1), ("GET", "a"), ("SET", "a", 2), ("GET", "a"),
                ("INCR", "n"), ("GET", "n"), ("INCR", "n"), ("PING",),
                ("GET", "n"), ("FOO",), ("APPEND", "a", "x"), ("GET", "a")]
    stream = b"".join(Client.encode(*c) for c in commands)
    with Quoind(PATH) as q:
        for replica in range(3):
            c = q.client(replica)
            for cut in range(len(stream) + 1):
                check("reset", c.pipeline(("DEL", "a", "n"))[0] >= 0, True)
                c.send(stream[:cut])
                if cut % 3 == 0:
                    time.sleep(0.0005)
                c.send(stream[cut:])
                got = [c.reply() for _ in commands]
                got[9] = isinstance(got[9], Error)
                check("cut %d at replica %d" % (cut, replica), got,
                      [b"OK", b"1", b"OK", b"2", 1, b"1", 2, b"PONG", b"2",
                       True, 2, b"2x"])


def test_no_set_without_the_acceptor():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        check("before", cs[0].call("SET", "a", "1"), b"OK")
        os.kill(q.pids()[1], signal.SIGSTOP)
        for i in (0, 2):
            cs[i].send(Client.encode("SET", "a", "x%d" % i))
        assert not cs[0].answers_within(0.5), "answered without acceptor"
        assert not cs[2].answers_within(0.5), "answered without acceptor"
        os.kill(q.pids()[1], signal.SIGCONT)
        check("after", [cs[i].reply() for i in (0, 2)], [b"OK", b"OK"])
        check("digests", len(set(digests(q))), 1)


def test_held_learns():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        check("set", cs[0].call("SET", "a", "old"), b"OK")
        check("get", cs[2].call("GET", "a"), b"old")
        check("hold", cs[2].call("DEBUG", "HOLD-LEARNS", 1), b"OK")
        check("set", cs[0].call("SET", "a", "new"), b"OK")
        cs[2].send(Client.encode("GET", "a"))
        assert not cs[2].answers_within(0.3), "old value from a linearizable read"
        other = q.client(2)
        check("release", other.call("DEBUG", "HOLD-LEARNS", 0), b"OK")
        check("get", cs[2].reply(), b"new")
    with Quoind(PATH, args=("--consistency", "local")) as q:
        cs = [q.client(i) for i in range(3)]
        cs[0].call("SET", "a", "old")
        while cs[2].call("GET", "a") != b"old":
            pass
        cs[2].call("DEBUG", "HOLD-LEARNS", 1)
        check("set", cs[0].call("SET", "a", "new"), b"OK")
        check("local read", cs[2].call("GET", "a"), b"old")
        cs[2].call("DEBUG", "HOLD-LEARNS", 0)


def test_stopped_learner_catches_up():
    with Quoind(PATH) as q:
        c = q.client(0)
        learner = q.pids()[2]
        os.kill(learner, signal.SIGSTOP)
        for i in range(0, 60000, 500):
            c.send(b"".join(Client.encode("SET", "k%d" % k, i)
                            for k in range(i, i + 500)))
            for _ in range(500):
                check("set", c.reply(), b"OK")
        os.kill(learner, signal.SIGCONT)
        check("digests", len(set(digests(q))), 1)
        check("size", q.client(2).call("DBSIZE"), 60000)


def hammer(q, replica, seed, count):
    rng = random.Random(seed)
    c = q.client(replica)
    done = 0
    while done < count:
        n = min(rng.randrange(1, 200), count - done)
        batch = []
        for _ in range(n):
            key = "k%d" % rng.randrange(2000)
            batch.append(rng.choice((
                ("SET", key, "v%d" % rng.getrandbits(64)), ("DEL", key),
                ("APPEND", key, "x"), ("SETRANGE", key, 5, "yy"),
                ("SET", "n%d" % rng.randrange(50), rng.randrange(100)),
                ("INCR", "n%d" % rng.randrange(50)),
                ("MSET", key, "1", key + "b", "2"))))
        c.pipeline(*batch)
        done += n
    c.close()


def test_random_writes_through_all_replicas(count=30000, stops=True):
    with Quoind(PATH) as q:
        threads = [threading.Thread(target=hammer, args=(q, i, i, count // 3))
                   for i in range(3)]
        for t in threads:
            t.start()
        pids = q.pids()
        rng = random.Random(9)
        while stops and any(t.is_alive() for t in threads):
            pid = rng.choice(pids)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(rng.random() * 0.05)
            os.kill(pid, signal.SIGCONT)
            time.sleep(rng.random() * 0.05)
        for t in threads:
            t.join()
        check("digests", len(set(digests(q))), 1)


def test_bursts_from_every_replica_are_answered():
    """Each burst ends in silence: whoever sleeps through a timer, or for room
    that is there, would leave it unanswered."""
    for _ in range(3):
        with Quoind(PATH) as q:
            for replica in range(3):
                c = q.client(replica)
                for burst in range(12):
                    got = c.pipeline(*[("SET", "key%d" % k, "v" * 1000)
                                       for k in range(burst * 300)])
                    check("burst", set(got) - {b"OK"}, set())


def test_no_sockets_between_replicas_and_private_stores():
    with Quoind(PATH) as q:
        c = q.client(0)
        before = shared_bytes(q)
        value = "v" * 1000
        for i in range(0, 20000, 500):
            c.pipeline(*[("SET", "key%d" % k, value)
                         for k in range(i, i + 500)])
        check("digests", len(set(digests(q))), 1)
        check("shared memory", shared_bytes(q), before)
        for pid in q.pids():
            with open("/proc/%d/status" % pid) as f:
                status = f.read()
            rss = int(status.split("RssAnon:")[1].split()[0]) * 1024
            assert rss > 20000 * 1000, "replica %d holds %d bytes" % (pid, rss)
        inodes = {}
        for pid in q.pids() + [q.proc.pid]:
            for fd in os.listdir("/proc/%d/fd" % pid):
                try:
                    name = os.readlink("/proc/%d/fd/%s" % (pid, fd))
                except FileNotFoundError:
                    continue
                if name.startswith("socket:"):
                    inodes.setdefault(name, set()).add(pid)
        import subprocess
        out = subprocess.run(["ss", "-xpn"], capture_output=True, text=True)
        replicas = set(q.pids())
        pairs = {}
        for line in out.stdout.splitlines():
            f = line.split()
            if len(f) >= 8 and f[5].isdigit() and f[7].isdigit():
                pairs[f[5]] = f[7]
        for a, b in pairs.items():
            one = inodes.get("socket:[%s]" % a, set()) & replicas
            two = inodes.get("socket:[%s]" % b, set()) & replicas
            for x in one:
                assert not (two - {x} - one), "socket between replicas"


def shared_bytes(q):
    total = 0
    for pid in q.pids():
        with open("/proc/%d/status" % pid) as f:
            total += int(f.read().split("RssShmem:")[1].split()[0])
    # The lanes are allocated in full at start; what is mapped is bounded by
    # their size, so compare the sizes of the memfds.
    sizes = 0
    for pid in q.pids():
        for fd in os.listdir("/proc/%d/fd" % pid):
            path = "/proc/%d/fd/%s" % (pid, fd)
            try:
                if os.readlink(path).startswith("/memfd:"):
                    sizes += os.stat(path).st_size
            except FileNotFoundError:
                pass
    return sizes


def test_a_wrecked_replica_takes_nobody_with_it():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for i in range(200):
            check("set", cs[i % 3].call("SET", "k%d" % i, i), b"OK")
        cs[2].send(Client.encode("DEBUG", "WRECK"))
        try:
            cs[2].reply()
            raise AssertionError("the wrecked replica answered")
        except (ConnectionError, OSError):
            pass
        for i in range(200, 600):
            check("set", cs[i % 2].call("SET", "k%d" % i, i), b"OK")
            check("get", cs[1 - i % 2].call("GET", "k%d" % i), b"%d" % i)
        one, two = [cs[i].call("DEBUG", "DIGEST") for i in range(2)]
        check("digests", one, two)


def test_big_values():
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        for size in (16383, 16384, 65535, 65536, 300000, 5 << 20):
            for i, c in enumerate(cs):
                value = bytes([97 + i]) * size
                check("set %d" % size, c.call("SET", "big", value), b"OK")
                for d in cs:
                    assert d.call("GET", "big") == value, "size %d" % size
        check("digests", len(set(digests(q))), 1)


def info(c, *sections):
    """INFO as a dict of texts."""
    lines = c.call("INFO", *sections).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def clients(c, *filters):
    """CLIENT LIST as dicts."""
    text = c.call("CLIENT", "LIST", *filters).decode()
    return [dict(f.split("=", 1) for f in line.split(" "))
            for line in text.splitlines()]


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
            all_ = [info(c, "everything") for c in cs]
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
                check("errors", a["errorstat_ERR"], "count=%d" % replicas)
                check("port", a["tcp_port"], str(q.port))
                check("keys", a["db0"].split(",")[0], "keys=%d" % replicas)
                get = dict(f.split("=") for f in a["cmdstat_get"].split(","))
                check("calls", get["calls"], str(2 * replicas))
                incr = dict(f.split("=")
                            for f in a["cmdstat_incrby"].split(","))
                check("failed", incr["failed_calls"], str(replicas))
                for i in range(replicas):
                    assert "state=online" in a["replica%d" % i], a
            ids = set()
            for c in cs:
                lines = clients(c)
                check("names", sorted(x["name"] for x in lines),
                      ["n%d" % i for i in range(replicas)])
                ids |= {x["id"] for x in lines}
            check("ids", len(ids), replicas)


def test_client_kill_reaches_every_replica():
    with Quoind(PATH) as q:
        asker, other = q.client(0), q.client(1)
        oid = other.call("CLIENT", "ID")
        check("listed", [x["id"] for x in clients(asker, "ID", oid)],
              [str(oid)])
        check("kill", asker.call("CLIENT", "KILL", "ID", oid), 1)
        assert closed(other), "it lives"
        check("again", asker.call("CLIENT", "KILL", "ID", oid), 0)
        # One that waits is let go.
        waits = q.client(2)
        wid = waits.call("CLIENT", "ID")
        waits.send(Client.encode("WAIT", 9, 0))
        while info(asker, "clients")["blocked_clients"] != "1":
            pass
        check("kill", asker.call("CLIENT", "KILL", "ID", wid), 1)
        assert closed(waits), "it waits"
        check("blocked", info(asker, "clients")["blocked_clients"], "0")
        # The asker has its reply before it goes; what follows is dropped.
        me = asker.call("CLIENT", "ID")
        asker.send(Client.encode("CLIENT", "KILL", "ID", me, "SKIPME", "no") +
                   Client.encode("PING"))
        check("self", asker.reply(), 1)
        assert closed(asker), "it goes on"


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
    with Quoind(PATH) as q:
        cs = [q.client(i) for i in range(3)]
        os.kill(q.pids()[2], signal.SIGSTOP)
        check("stopped", info(cs[0], "quoin")["replicas_missing"], "2")
        check("left out", len(clients(cs[0])), 2)
        os.kill(q.pids()[2], signal.SIGCONT)
        while info(cs[0], "quoin")["replicas_missing"] != "":
            pass
        check("back", len(clients(cs[0])), 3)
        os.kill(q.pids()[2], signal.SIGKILL)
        while info(cs[0], "quoin")["replicas_missing"] != "2":
            pass
        check("left out", len(clients(cs[1])), 2)


def test_an_option_is_set_once():
    with Quoind(PATH) as q:
        got = q.client(1).call("CONFIG", "SET", "max-args", 2000,
                               "MAX-ARGS", 3000)
        check("twice", str(got), "ERR CONFIG SET failed (possibly related to "
              "argument 'MAX-ARGS') - duplicate parameter")


def main():
    names = sys.argv[2:] or [n for n in globals() if n.startswith("test_")]
    failed = 0
    for name in names:
        started = time.monotonic()
        try:
            globals()[name]()
            result = "ok"
        except Exception as e:  # report and go on with the others
            failed += 1
            result = "FAILED: %s: %s" % (type(e).__name__, e)
        print("%-55s %6.1f s  %s" % (name, time.monotonic() - started,
                                     result), flush=True)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    sys.exit(failed != 0)


main()
