"""`quoin load --verify` judges quoind: linearizable through all replicas while
they are stopped and killed; and it sees what `--consistency local` leaves out.

Usage: test_linear.py QUOIND QUOIN [NAME...]
"""
import json
import os
import signal
import subprocess
import sys

from checks import check, main
from quoind import Quoind

PATH, QUOIN = sys.argv[1:3]
EVERY_KIND = "get:4,set:2,incr:2,del:1,cas:2,rmw:1"


class Judge:
    """A load on the ports of all replicas; its verdict is that of everything
    that was asked between begin and end."""

    def __init__(self, q, *args):
        to = [a for i in range(q.replicas)
              for a in ("--to", "127.0.0.1:%d" % (q.port + 1 + i))]
        self.process = subprocess.Popen(
            [QUOIN, "load", *to, "--keys", "50", "--warmup", "0", "--seconds",
             "600", "--verify", "--json", *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def second(self):
        return json.loads(self.process.stdout.readline())

    def answered(self, count):
        """So many more seconds that had an answer."""
        while count > 0:
            count -= self.second()["ops"] > 0

    def end(self):
        """@return the summary, what was found, and the exit status."""
        self.process.send_signal(signal.SIGINT)
        out, text = self.process.communicate()
        return json.loads(out.splitlines()[-1]), text, self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def test_replicas_that_stop_and_die_leave_all_linearizable():
    """Operations of every kind at all ports. What a stopped replica answers
    when it goes on must not be old."""
    with Quoind(PATH) as q, Judge(q, "--mix", EVERY_KIND, "--rate", "5k",
                                  "--connections", "10", "--spread",
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
    """A replica that stood still answers with what it knew."""
    with Quoind(PATH, args=["--consistency", "local"]) as q, Judge(
            q, "--mix", "get,set", "--rate", "20k") as judge:
        judge.answered(1)
        for _ in range(3):
            pid = q.pids()[2]
            os.kill(pid, signal.SIGSTOP)
            judge.second()
            os.kill(pid, signal.SIGCONT)
            judge.answered(1)
        summary, text, status = judge.end()
        check("status", status, 3)
        check("verdict", summary["verify"]["verdict"], "not linearizable")
        assert "operations show it" in text, text


main(sys.argv[3:], globals())
