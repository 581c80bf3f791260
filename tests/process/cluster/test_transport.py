"""The server over each transport: load that is verified while replicas stop,
die and restart; long values beside a slow member; what INFO says of it.

Usage: test_transport.py QUOIND QUOIN TRANSPORT [NAME...]
"""
import os
import signal
import sys
import threading
import time

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.info_view import fields, info
from tests.process.lib.quoind import Quoind
from tests.process.lib.verify import VerifiedLoad

PATH, QUOIN, TRANSPORT = sys.argv[1:4]
UNITS = {"ump": "cells", "ffq": "slots", "mpb": "lines", "udn": "words"}
UNIT = UNITS[TRANSPORT]


def server():
    return Quoind(PATH, args=["--transport", TRANSPORT])


def moved(q, asked, replica):
    """What that replica's queuepairs have sent and received; None before it
    answers. Nothing goes over another backend."""
    got = fields(info(q, asked), replica, "transport")
    if not got:
        return None
    check("transport", got["name"], TRANSPORT)
    for unit in set(UNITS.values()) - {UNIT}:
        check(unit, (got[unit + "_sent"], got[unit + "_received"]), ("0", "0"))
    return int(got[UNIT + "_sent"]), int(got[UNIT + "_received"])


def back(q, asked, replica, pid):
    """A new incarnation of that replica serves."""
    wait_until("replica %d is back" % replica, lambda: fields(
        info(q, asked), replica).get("state") == "online" and
        q.pids()[replica] != pid)


def test_info_names_it_and_counts():
    with server() as q:
        before = [moved(q, 0, i) for i in range(3)]
        c = q.client(1)
        for i in range(200):
            check("set", c.call("SET", "key%d" % i, "v" * i), b"OK")
        check("everywhere", c.call("WAIT", "2", "0"), 2)
        c.close()
        for i, (sent, received) in enumerate(before):
            now = moved(q, 0, i)
            assert now[0] > sent and now[1] > received, (i, now, before[i])
        agree(q)


def test_a_device_says_which_options_it_overrules():
    with server() as q:
        now = info(q, 0)
        device = TRANSPORT in ("mpb", "udn")
        check("acceptor", now["acceptor_kind"], "process" if device else "memory")
        check("shared state", now["shared_state"], "no" if device else "yes")
        if device:
            check("lines", len(q.logged("transport '%s' has no memory that "
                                        "replicas could read" % TRANSPORT)), 1)


def test_load_is_linearizable_through_stops_and_deaths():
    """SET, GET and INCR at all ports. Each replica is stopped once, and each is
    killed once, and restarts."""
    with server() as q, VerifiedLoad(q, QUOIN, "--mix", "get:4,set:2,incr:2",
                                     "--rate", "2k", "--connections", "10",
                                     "--spread", "request") as verified:
        verified.answered(1)
        for replica in range(3):
            pid = q.pids()[replica]
            os.kill(pid, signal.SIGSTOP)
            verified.second()
            os.kill(pid, signal.SIGCONT)
            verified.answered(1)
        for replica in range(3):
            pid = q.pids()[replica]
            os.kill(pid, signal.SIGKILL)
            back(q, (replica + 1) % 3, replica, pid)
            verified.answered(1)
        summary, text, status = verified.end()
        assert status == 0, text
        check("verdict", summary["verify"]["verdict"], "linearizable")
        agree(q)
        return "%d operations" % summary["verify"]["operations"]


def slow_down(pid, over):
    """That process runs a third of the time."""
    while not over.is_set():
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.02)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.01)


def test_long_values_beside_a_slow_member():
    """Messages of many frames, and a receiver that is often behind."""
    with server() as q:
        over = threading.Event()
        slow = threading.Thread(target=slow_down, args=(q.pids()[2], over))
        slow.start()
        try:
            with VerifiedLoad(q, QUOIN, "--mix", "get:2,set:2", "--rate", "200",
                              "--value-size", "16384", "--connections", "6",
                              "--spread", "request") as verified:
                verified.answered(3)
                summary, text, status = verified.end()
        finally:
            over.set()
            slow.join()
        assert status == 0, text
        check("verdict", summary["verify"]["verdict"], "linearizable")
        agree(q)
        return "%d operations" % summary["verify"]["operations"]


main(sys.argv[4:], globals())
