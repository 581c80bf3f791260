"""`quoin load --verify` judges quoind: linearizable through all replicas while
they are stopped and killed; and it sees what `--consistency local` leaves out.

Usage: test_linear.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys

from tests.process.lib.checks import check, main
from tests.process.lib.quoind import Quoind
from tests.process.lib.verify import Judge

PATH, QUOIN = sys.argv[1:3]
EVERY_KIND = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


def test_replicas_that_stop_and_die_leave_all_linearizable():
    """Operations of every kind at all ports. What a stopped replica answers
    when it goes on must not be old."""
    with Quoind(PATH) as q, Judge(q, QUOIN, "--mix", EVERY_KIND, "--rate",
                                  "5k", "--connections", "10", "--spread",
                                  "request") as judge:
        judge.answered(1)
        for replica in 2, 1, 0:
            pid = q.pids()[replica]
            os.kill(pid, signal.SIGSTOP)
            judge.second()
            os.kill(pid, signal.SIGCONT)
            judge.answered(1)
        os.kill(q.pids()[2], signal.SIGKILL)
        judge.answered(2)
        summary, text, status = judge.end()
        assert status == 0, text
        verify = summary["verify"]
        check("verdict", verify["verdict"], "linearizable")
        check("keys", verify["keys"], 100)  # 50 of them counters
        assert summary["disconnects"] > 0
        return "%d operations" % verify["operations"]


def test_local_reads_are_caught():
    """A replica that stood still answers with what it knew. More was written
    meanwhile than lanes hold, so it fetches, and looks at its clients between:
    nearly always; once is enough."""
    with Quoind(PATH, args=["--consistency", "local"]) as q:
        for count in range(1, 21):
            summary, text, status = stale_reads(q)
            if status != 0:
                break
        check("status", status, 3)
        check("verdict", summary["verify"]["verdict"], "not linearizable")
        assert "operations show it" in text, text
        return "%d times" % count


def stale_reads(q):
    with Judge(q, QUOIN, "--mix", "get,set", "--rate", "20k", "--value-size",
               "4096", "--interval", "0.5") as judge:
        judge.answered(1)
        pid = q.pids()[2]
        os.kill(pid, signal.SIGSTOP)
        judge.second()
        os.kill(pid, signal.SIGCONT)
        judge.answered(1)
        return judge.end()


main(sys.argv[3:], globals())
