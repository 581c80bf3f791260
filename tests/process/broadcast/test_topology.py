"""The broadcast tree given by --topology or a file is used, and an impossible
one is refused in one line.

Usage: test_topology.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import subprocess
import sys
import tempfile

from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.quoind import Quoind
from tests.process.lib.info_view import info

PATH = sys.argv[1]
CORES = sorted(os.sched_getaffinity(0))


def csv(folder, root, edges):
    path = os.path.join(folder, "tree.csv")
    with open(path, "w") as f:
        f.write("# root=%d\nparent,child,order\n" % root)
        f.writelines("%d,%d,%d\n" % e for e in edges)
    return path


def refused(says, *args):
    got = subprocess.run([PATH, "--port", "0", *args], capture_output=True,
                         timeout=60, check=False, text=True)
    check("status", got.returncode, 2)
    check("lines", len(got.stderr.splitlines()), 1)
    assert says in got.stderr, got.stderr


def test_a_name_is_the_tree():
    with Quoind(PATH, args=["--topology", "tree:k=1"]) as q:
        lines = info(q, 2)
        check("topology", lines["topology"], "tree:k=1")
        check("tree", lines["tree"], "0>1,1>2")
        assert "tree_predicted_nsec" not in lines, lines


def test_a_tree_from_a_file_places_replicas():
    with tempfile.TemporaryDirectory() as folder:
        tree = csv(folder, CORES[-1], [])
        got = subprocess.Popen([PATH, "--port", "0", "--topology", tree],
                               stdout=subprocess.PIPE, text=True)
        line = got.stdout.readline()
        with open("/proc/%d/task/%d/children" % (got.pid, got.pid)) as f:
            replicas = [int(p) for p in f.read().split()]
        core = os.sched_getaffinity(replicas[0])
        got.terminate()
        check("status", got.wait(60), 0)
        check("replicas of one core's tree", len(replicas), 1)
        check("core", core, {CORES[-1]})
        assert line, "no error line"


def test_a_tree_from_a_file_goes_on_without_its_root():
    """Where there are three cores: replica 0 is on the last of them."""
    if len(CORES) < 3:
        return
    with tempfile.TemporaryDirectory() as folder:
        a, b, c = CORES[:3]
        tree = csv(folder, c, [(c, a, 0), (a, b, 0)])
        with Quoind(PATH, args=["--topology", tree]) as q:
            check("tree", info(q, 1)["tree"], "0>1,1>2")
            leader = q.pids()[0]
            check("core", os.sched_getaffinity(leader), {c})
            q.client(1).call("SET", "a", 1)
            os.kill(leader, signal.SIGKILL)
            wait_until("another leads", lambda: info(q, 1)["leader"] != "0")
            heir = int(info(q, 1)["leader"])
            want = {1: "1>0,1>2", 2: "2>0,0>1"}[heir]
            wait_until("it is back", lambda: info(q, 1)["tree"] == want)
            check("set", q.client(1).call("SET", "a", 2), b"OK")
            agree(q)


def test_a_transport_that_is_for_threads_is_refused():
    refused("--transport ffq_shared is for threads", "--transport",
            "ffq_shared")


def test_an_unsuitable_topology_is_refused():
    refused("must be the file of a machine or of a tree, or one of: auto ",
            "--topology", "bush")
    with tempfile.TemporaryDirectory() as folder:
        tree = csv(folder, 0, [(0, 1, 0), (1, 2, 0)])
        refused("a tree over 3 cores, for 4 replicas", "--replicas", "4",
                "--topology", tree)
        tree = csv(folder, 65000, [(65000, 65001, 0), (65000, 65002, 1)])
        refused("quoind may not use core 65000", "--topology", tree)
        tree = csv(folder, 0, [(0, 1, 1), (0, 2, 2)])
        refused(tree + ":4: order:", "--replicas", "3", "--topology", tree)
        refused("machine '/no/such/m.json': No such file", "--machine",
                "/no/such/m.json")
        wrong = os.path.join(folder, "m.json")
        with open(wrong, "w") as f:
            f.write("{}\n")
        refused("is a machine, too; leave one out", "--machine", wrong,
                "--topology", wrong)


main(sys.argv[3:], globals())
