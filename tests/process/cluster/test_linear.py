"""`quoin load --verify` on quoind: linearizable through all replicas while
they are stopped and killed; and it detects the stale reads of `--consistency
local`.

Usage: test_linear.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys

from tests.process.lib.checks import check, main
from tests.process.lib.quoind import Quoind
from tests.process.lib.verify import VerifiedLoad

PATH, QUOIN = sys.argv[1:3]
EVERY_KIND = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


def test_replicas_that_stop_and_die_leave_all_linearizable():
    """Operations of every kind at all ports. Replies of a resumed replica must
    not be stale."""
    with Quoind(PATH) as q, VerifiedLoad(q, QUOIN, "--mix", EVERY_KIND,
                                         "--rate", "5k", "--connections", "10",
                                         "--spread", "request") as verified:
        verified.answered(1)
        for replica in 2, 1, 0:
            pid = q.pids()[replica]
            os.kill(pid, signal.SIGSTOP)
            verified.second()
            os.kill(pid, signal.SIGCONT)
            verified.answered(1)
        os.kill(q.pids()[2], signal.SIGKILL)
        verified.answered(2)
        summary, text, status = verified.end()
        assert status == 0, text
        verify = summary["verify"]
        check("verdict", verify["verdict"], "linearizable")
        check("keys", verify["keys"], 100)  # 50 of them counters
        assert summary["disconnects"] > 0
        return "%d operations" % verify["operations"]


def test_local_reads_are_caught():
    """A resumed replica answers with old data. More was written meanwhile than
    the channels hold, so it fetches, and serves its clients in between: stale
    reads occur nearly always; one is enough."""
    with Quoind(PATH, args=["--consistency", "local"]) as q:
        for count in range(1, 21):
            summary, text, status = stale_reads(q)
            if status != 0:
                break
        check("status", status, 3)
        check("verdict", summary["verify"]["verdict"], "not linearizable")
        assert "operations on this key show it" in text, text
        return "%d times" % count


def stale_reads(q):
    with VerifiedLoad(q, QUOIN, "--mix", "get,set", "--rate", "20k",
                      "--value-size", "4096", "--interval", "0.5") as verified:
        verified.answered(1)
        pid = q.pids()[2]
        os.kill(pid, signal.SIGSTOP)
        verified.second()
        os.kill(pid, signal.SIGCONT)
        verified.answered(1)
        return verified.end()


main(sys.argv[3:], globals())
