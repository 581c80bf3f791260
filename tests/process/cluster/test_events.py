"""The flight recorder of real servers: read live, after a death, and from the
file that survivors write.

Usage: test_events.py QUOIND QUOIN [NAME...]
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

from tests.process.lib.checks import check, main, wait_until
from tests.process.lib.quoind import Error, Quoind

PATH, QUOIN = sys.argv[1:3]


def quoin(*args, status=0, stdin=None):
    done = subprocess.run([QUOIN, "events", *args], capture_output=True,
                          text=True, input=stdin)
    assert done.returncode == status, "%d: %s" % (done.returncode, done.stderr)
    return done


def to(q, *replicas):
    return [a for i in replicas
            for a in ("--to", "127.0.0.1:%d" % (q.port + 1 + i))]


def events(*args):
    return [json.loads(line)
            for line in quoin("--json", *args).stdout.splitlines()]


def of(all_, replica, kind):
    return [e for e in all_ if e["replica"] == replica and e["event"] == kind]


def kill(q, replica):
    """@return its process id."""
    pid = q.pids()[replica]
    os.kill(pid, signal.SIGKILL)
    return pid


def seen_by(q, replica, dead):
    """`replica` has recorded the end of `dead`."""
    return any(e["what"]["node"] == dead
               for e in of(events(*to(q, replica)), replica, "down"))


def test_any_replica_shows_the_recorders_of_all():
    with Quoind(PATH) as q:
        pids = q.pids()
        for asked in range(3):
            all_ = events(*to(q, asked))
            for i in range(3):
                began = of(all_, i, "begin")
                check("begins", len(began), 1)
                check("process", began[0]["what"]["pid"], pids[i])
                check("seats", began[0]["what"]["seats"], 8)
                check("serving", len(of(all_, i, "serving")), 1)
            times = [e["monotonic_ns"] for e in all_]
            check("order", times, sorted(times))


def test_writes_leave_no_trace():
    with Quoind(PATH) as q:
        before = events(*to(q, 0))
        c = q.client(1)
        for i in range(0, 10000, 100):
            c.pipeline(*[("SET", "k%d" % k, "v") for k in range(i, i + 100)])
        kinds = {e["event"] for e in events(*to(q, 0))[len(before):]}
        assert kinds <= {"pause", "sent", "got", "behind", "back"}, kinds


def test_the_living_show_the_events_of_the_dead():
    """All its events are present, and those of the replicas that saw its end.
    """
    with Quoind(PATH) as q:
        q.drains = False
        pid = kill(q, 2)
        for i in 0, 1:
            wait_until("the end is noted", lambda i=i: seen_by(q, i, 2))
            all_ = events(*to(q, i))
            mine = [e for e in of(all_, 2, "begin") if
                    e["what"]["pid"] == pid]
            check("its beginning", len(mine), 1)
            ends = [e for e in of(all_, i, "down")
                    if e["what"]["node"] == 2]
            check("its end", len(ends), 1)
            check("which incarnation", ends[0]["what"]["incarnation"], mine[0]["incarnation"])
            assert ends[0]["monotonic_ns"] > mine[0]["monotonic_ns"]


def test_several_addresses_and_files_count_each_event_once():
    with Quoind(PATH) as q:
        one = quoin("--raw", *to(q, 0)).stdout
        with tempfile.NamedTemporaryFile("w", suffix=".events") as f:
            f.write(one)
            f.flush()
            both = events(*to(q, 0, 1, 2), f.name)
        who = [(e["replica"], e["incarnation"], e["index"]) for e in both]
        check("each once", len(set(who)), len(who))
        assert len(both) >= len(one.splitlines())
        check("from a pipe", quoin("--raw", "-", stdin=one).stdout, one)
        last = quoin("--last", "2", "-", stdin=one).stdout
        check("the last two", len(last.splitlines()), 2)


def test_one_survivor_writes_the_file():
    with tempfile.TemporaryDirectory() as directory:
        with Quoind(PATH, args=["--events-dir", directory, "--restart",
                                "no"]) as q:
            q.drains = False
            kill(q, 2)
            wait_until("the file is there",
                       lambda: "are in " + directory in log_of(q))
        check("said once", q.log.count("are in " + directory), 1)
        found = glob.glob(directory + "/*")
        check("files", len(found), 1)
        name = os.path.basename(found[0])
        assert name.startswith("replica-2-incarnation-"), name
        all_ = events(found[0])
        for i in range(3):
            check("begins", len(of(all_, i, "begin")), 1)
        assert any(e["what"]["node"] == 2 for e in
                   of(all_, 0, "down") + of(all_, 1, "down"))


def test_a_snapshot_is_noted_at_both_ends():
    """A killed replica rejoins with a snapshot, unless it finds all that it
    missed in the ring of the leader."""
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        c = q.client(0)
        for i in range(0, 5000, 500):
            c.pipeline(*[("SET", "k%d" % k, "v") for k in range(i, i + 500)])
        kill(q, 2)
        wait_until("it is back", lambda: of(events(*to(q, 0)), 2, "installed"))
        all_ = events(*to(q, 0))
        donor = of(all_, 2, "snapshot-asked")[-1]["what"]["of"]
        check("begun for", of(all_, donor, "snapshot-begun")[-1]["what"]["to"],
              2)
        assert of(all_, donor, "snapshot-served")


def log_of(q):
    q.errors.flush()
    return os.pread(q.errors.fileno(), 1 << 20, 0).decode()


def test_the_command_reports_errors():
    with Quoind(PATH) as q:
        c = q.client(1)
        text = c.call("QUOIN", "EVENTS", "2").decode()
        assert {line.split()[2][0] for line in text.splitlines()} == {"2"}
        for wrong in "8", "-1", "x":
            error = c.call("QUOIN", "EVENTS", wrong)
            check("no replica %s" % wrong, str(error),
                  "ERR no such replica: there are 0 to 7")
        assert isinstance(c.call("QUOIN", "EVENTS", "1", "2"), Error)
        assert isinstance(c.call("QUOIN", "NONSENSE"), Error)


def test_mistakes_are_one_line():
    for args, status, text in (
            ([], 2, "missing --to HOST:PORT"),
            (["--to", "nonsense"], 2, "expected HOST:PORT"),
            (["--to", "127.0.0.1:73737"], 2, "must be 1 to 65535"),
            (["--to", "127.0.0.1:1"], 1, "Connection refused"),
            (["/nowhere/file"], 2, "cannot read /nowhere/file: No such file"),
            ([os.path.abspath(__file__)], 2, ":1: not a line of events"),
            (["--last", "0", "x"], 2, "--last")):
        done = quoin(*args, status=status)
        assert text in done.stderr, done.stderr
        check("one line", len(done.stderr.splitlines()), 1)
        check("nothing else", done.stdout, "")
    started = subprocess.run([PATH, "--port", "0", "--events-dir", "/nowhere"],
                             capture_output=True, text=True)
    check("status", started.returncode, 2)
    assert "events-dir '/nowhere'" in started.stderr, started.stderr


main(sys.argv[3:], globals())
