"""Groups with vacant seats (--replicas-max): they serve, die, come back, are
adopted and upgraded as those without, and vacant seats take little memory.

Usage: test_vacant_seats.py QUOIND QUOIN [NAME...]
"""
import sys

from tests.process.cluster.adoption import (adopt, complete, end_well, fill, kill_replicas,
                      kill_supervisor, pids_of, refused)
from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.info_view import info
from tests.process.lib.quoind import Quoind

PATH = sys.argv[1]


def seats(q, replica, taken, count):
    lines = info(q, replica)
    check("replicas", lines["replicas"], str(taken))
    check("seats", lines["seats"], str(count))
    check("voters", lines["voters"], ",".join(map(str, range(taken))))
    check("vacant", lines["vacant_seats"],
          ",".join(map(str, range(taken, count))))
    wait_until("none is missing", lambda: info(
        q, replica)["replicas_missing"] == "")  # one may answer late


def test_three_of_five_live_as_three():
    """The leader dies; the supervisor dies, and another replica with it."""
    with Quoind(PATH, args=["--replicas-max", "5"]) as q:
        n = fill(q)
        check("processes", sorted(pids_of(q)), [0, 1, 2])
        seats(q, 1, 3, 5)
        check("least", info(q, 0)["min_replicas_to_write"], "1")
        kill_replicas(q, 0)
        n.add(1)
        complete(q)
        kill_supervisor(q)
        kill_replicas(q, 2)
        adopt(q, 2)
        complete(q)
        check("processes", sorted(pids_of(q)), [0, 1, 2])
        seats(q, 0, 3, 5)
        c = q.client(1)
        wait_until("each has answered", lambda: c.call(
            "CONFIG", "RESETSTAT") == b"OK")
        c.close()
        end_well(q, n)


def test_one_of_four_serves_and_is_adopted():
    with Quoind(PATH, replicas=1, args=["--replicas-max", "4"]) as q:
        n = fill(q)
        seats(q, 0, 1, 4)
        kill_supervisor(q)
        line = refused(q, "--upgrade")
        assert "cannot upgrade a single-replica server" in line, line
        line = refused(q, "--replicas-max", "5")
        assert "contradicts the running replicas, which use 4" in line, line
        adopt(q, 1)
        check("processes", list(pids_of(q)), [0])
        n.add(0, 20)
        n.check_everywhere()


def test_no_connection_goes_to_a_vacant_seat():
    """63 of 64 sockets on the common port belong to vacant seats."""
    with Quoind(PATH, replicas=1, args=["--replicas-max", "64"]) as q:
        clients = [q.client() for _ in range(100)]
        for c in clients:
            check("ping", c.call("PING"), b"PONG")
            c.close()


def shared(q):
    """KiB of shared memory that the replicas have, each page once."""
    total = 0
    for pid in pids_of(q).values():
        with open("/proc/%d/smaps_rollup" % pid) as f:
            lines = dict(line.split(":", 1) for line in f if ":" in line)
        total += int(lines["Pss_Shmem"].split()[0])
    return total


def test_64_seats_take_little_memory():
    """8 MiB of shared memory at most, beyond a group without them."""
    used = []
    for args in [], ["--replicas-max", "64"]:
        with Quoind(PATH, args=args) as q:
            for i in range(3):
                c = q.client(i)
                c.pipeline(*[("SET", "key%d" % k, k) for k in range(500)])
                c.close()
            complete(q)
            used.append(shared(q))
    assert used[1] - used[0] <= 8 << 10, "KiB of 3 and of 64 seats: %r" % used


def test_a_group_without_the_memory_acceptor_has_no_vacant_seats():
    with Quoind(PATH) as q:
        line = refused(q, "--port", str(q.port), "--replicas-max", "5",
                       "--acceptor", "process")
        assert "with the process acceptor a group keeps its size" in line, line


if __name__ == "__main__":
    main(sys.argv[3:], dict(globals()))
