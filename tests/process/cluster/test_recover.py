"""The process acceptor: leader and acceptor are lost together. The group
reports that it has stopped, and `quoin recover` restarts it from the longest
log.

Both are stopped before they are killed, so that neither answers anything in
between.

Usage: test_recover.py QUOIND QUOIN [NAME...]
"""
import os
import pty
import re
import signal
import subprocess
import sys

from tests.process.cluster.adoption import adopt, alone, complete, kill_replicas, kill_supervisor
from tests.process.lib.checks import agree, check, main, wait_until
from tests.process.lib.quoind import Client, Error, Quoind
from tests.process.lib.info_view import fields, info

PATH, QUOIN = sys.argv[1:3]
PROCESS = ["--acceptor", "process"]
STOPPED = "CLUSTERDOWN the group has stopped: its leader and acceptor were " \
          "lost together; run quoin recover"
INCOMPLETE = "CLUSTERDOWN the group has stopped: its leader and acceptor were " \
             "lost, and a part of their log with them; run quoin recover"
LOG_BYTES = 256 << 20  # paxos/machine/params.h


def part(q, asked, replica):
    """The INFO line of `replica` at `asked`: {name: text}."""
    return fields(info(q, asked), replica)


def position(q, asked, replica):
    """The position that `replica` has learned. It may be too busy to answer
    immediately."""
    found = {}

    def answers():
        found.update(part(q, asked, replica))
        return "learned" in found
    wait_until("replica %d answers" % replica, answers)
    return int(found["learned"])


def lose_both(q):
    """Kills leader and acceptor. @return the remaining one."""
    roles = info(q, 0)
    both = int(roles["leader"]), int(roles["acceptor"])
    left = ({0, 1, 2} - set(both)).pop()
    pids = q.pids()
    for sig in signal.SIGSTOP, signal.SIGKILL:
        for i in both:
            os.kill(pids[i], sig)
    return left


def stopped(q, replica):
    wait_until("replica %d says that the group has stopped" % replica,
               lambda: info(q, replica)["group"] == "stopped")


def hold(q, replica, on):
    c = q.client(replica)
    check("hold", c.call("DEBUG", "HOLD-LEARNS", str(int(on))), b"OK")
    c.close()


def log_of(q):
    q.errors.flush()
    return os.pread(q.errors.fileno(), 1 << 20, 0).decode(errors="replace")


def refuses(q, replica):
    """Reads of its data continue, writes are refused immediately."""
    c = q.client(replica)
    got = c.call("SET", "key", "2")
    assert isinstance(got, Error) and str(got) == STOPPED, got
    check("read", c.call("GET", "key"), b"1")
    c.close()


def test_a_stopped_group_reports_it():
    with Quoind(PATH, args=PROCESS) as q:
        check("before", info(q, 2)["group"], "serving")
        c = q.client(0)
        check("write", c.call("SET", "key", "1"), b"OK")
        check("everywhere", c.call("WAIT", "2", "0"), 2)
        c.close()
        left = lose_both(q)
        stopped(q, left)
        refuses(q, left)
        for i in range(3):
            wait_until("replica %d is back" % i, lambda:
                       part(q, left, i).get("state") == "online")
            stopped(q, i)
            refuses(q, i)
            now = info(q, i)
            check("roles", (now["leader"], now["acceptor"], now["in_sync"]),
                  ("none", "none", ""))
        lines = q.logged("has stopped")
        check("one line", len(lines), 1)
        assert "nothing above is known" in lines[0], lines
        assert "quoin recover" in lines[0], lines
        q.drains = False


def test_writes_under_way_are_answered():
    """Without commit-timeout, too: their outcome is unknown."""
    with Quoind(PATH, args=PROCESS) as q:
        roles = info(q, 0)
        both = int(roles["leader"]), int(roles["acceptor"])
        left = ({0, 1, 2} - set(both)).pop()
        pids = q.pids()
        c, other = q.client(left), q.client(left)
        for i in both:
            os.kill(pids[i], signal.SIGSTOP)
        c.send(Client.encode("SET", "key", "1") * 3)
        wait_until("they are under way",
                   lambda: b"cmd=set" in other.call("CLIENT", "LIST"))
        other.close()
        for i in both:
            os.kill(pids[i], signal.SIGKILL)
        got = {str(c.reply()) for _ in range(3)}
        check("answers", got,
              {"ERR write outcome unknown, read before retrying"})
        c.close()
        q.drains = False


def test_one_of_the_two_is_no_stop():
    with Quoind(PATH, args=PROCESS) as q:
        c = q.client(2)
        for name in "leader", "acceptor":
            victim = int(info(q, 2)[name])
            if victim == 2:
                continue
            pid = q.pids()[victim]
            os.kill(pid, signal.SIGKILL)
            check("continues", c.call("SET", name, "1"), b"OK")
            wait_until("it is back", lambda: part(q, 2, victim).get("state") ==
                       "online" and part(q, 2, victim).get("pid", str(pid)) !=
                       str(pid))
        check("state", info(q, 2)["group"], "serving")
        c.close()
        assert "has stopped" not in log_of(q)
        agree(q)


def pids(q):
    return dict(enumerate(q.pids()))


def all_back(q, left, before):
    """The group serves; all replicas except the remaining one are new
    incarnations."""
    wait_until("it serves", lambda: info(q, left)["group"] == "serving")
    for i in range(3):
        wait_until("replica %d is back" % i, lambda:
                   part(q, left, i).get("state") == "online")
    now = pids(q)
    check("the same", now[left], before[left])
    assert all(now[i] != before[i] for i in before if i != left)


def recover(q, *options, replica=None):
    """@return its status, stdout and stderr."""
    port = q.port if replica is None else q.port + 1 + replica
    done = subprocess.run([QUOIN, "recover", "--to", "127.0.0.1:%d" % port,
                           *options], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=120, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def recover_by_hand(q, replica, meanwhile):
    """As a user at a terminal, with a delay before the yes. @return its status
    and stderr."""
    keys, terminal = pty.openpty()
    with subprocess.Popen([QUOIN, "recover", "--to",
                           "127.0.0.1:%d" % (q.port + 1 + replica)],
                          stdin=terminal, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as tool:
        said = b""
        while not said.endswith(b"Type yes to continue: "):
            more = tool.stdout.read1()
            assert more, (said, tool.stderr.read())
            said += more
        meanwhile()
        os.write(keys, b"yes\n")
        wrong = tool.communicate(timeout=120)[1].decode()
    os.close(keys)
    os.close(terminal)
    return tool.returncode, wrong


def fill(q, count=500):
    c = q.client(0)
    check("fill", set(c.pipeline(*[("SET", "key%d" % i, i)
                                   for i in range(count)])), {b"OK"})
    check("everywhere", c.call("WAIT", "2", "0"), 2)
    c.close()


def writable(q, count=500):
    """Each replica has all of it, and accepts writes."""
    for i in range(3):
        c = q.client(i)
        check("kept", c.pipeline(*[("GET", "key%d" % k)
                                   for k in range(count)]),
              [b"%d" % k for k in range(count)])
        check("write", c.call("SET", "new%d" % i, "1"), b"OK")
        c.close()
    agree(q)


def test_recovery_keeps_what_the_survivor_had():
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        left = lose_both(q)
        stopped(q, left)
        before = pids(q)
        status, said, wrong = recover(q)
        check("unasked", status, 2)
        assert "--yes" in wrong and "stopped in epoch" in said, (said, wrong)
        check("nothing is done", info(q, left)["group"], "stopped")
        status, said, wrong = recover(q, "--yes")
        check("status", (status, wrong), (0, ""))
        assert "No higher position is known" in said, said
        assert "Recovered from replica" in said, said
        wait_until("it serves", lambda: info(q, left)["group"] == "serving")
        assert pids(q) != before
        writable(q)
        # The next loss of a replica is an ordinary fail-over.
        roles = info(q, 0)
        victim = int(roles["acceptor"])
        os.kill(q.pids()[victim], signal.SIGKILL)
        c = q.client((victim + 1) % 3)
        check("continues", c.call("SET", "again", "1"), b"OK")
        c.close()


def test_lost_positions_are_reported():
    """The third learns nothing for a while. Writes acknowledged meanwhile are
    lost, nothing else; the positions are assigned again, and reads do not wait
    for entries that were seen at the old ones."""
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        roles = info(q, 0)
        both = int(roles["leader"]), int(roles["acceptor"])
        left = ({0, 1, 2} - set(both)).pop()
        has = position(q, left, left)
        hold(q, left, True)
        c = q.client(both[0])
        for i in range(20):
            check("acknowledged", c.call("SET", "lost%d" % i, "1"), b"OK")
        c.close()
        decided = position(q, both[1], both[1])
        assert decided > has, (decided, has)
        check("left", lose_both(q), left)
        stopped(q, left)
        line, = q.logged("has stopped")
        assert "%d to %d are decided, and may be lost" % (has + 1, decided) \
            in line, line
        hold(q, left, False)
        status, said, wrong = recover(q, "--yes", replica=left)
        check("status", (status, wrong), (0, ""))
        assert "replica %d  has all positions up to %d  <- from here" % \
            (left, has) in said, said
        assert "Positions %d to %d may be lost" % (has + 1, decided) in said, \
            said
        for i in range(3):
            c = q.client(i)
            check("lost", c.call("EXISTS", *["lost%d" % k
                                             for k in range(20)]), 0)
            c.close()
        writable(q)
        lines = q.logged("are lost")
        check("one line", len(lines), 1)
        assert "%d to %d are lost" % (has + 1, decided) in lines[0], lines


def write_more_than_is_kept(q, replica):
    """@return how many keys."""
    value = b"x" * (64 << 10)
    count = LOG_BYTES // len(value) + 64
    c = q.client(replica)
    for i in range(count):
        c.send(Client.encode("SET", "big%d" % i, value))
        if i >= 16:  # in flight
            check("write", c.reply(), b"OK")
    check("the last ones", {c.reply() for _ in range(16)}, {b"OK"})
    c.close()
    return count


def laggard_leads(q, left, epoch):
    """It is informed of the end of the log. False if the next incarnation of
    the former leader was faster, and has received a snapshot."""
    seen = []

    def known():
        c = q.client(left)
        seen.append(b"message=PREPARED" in
                    c.call("QUOIN", "EVENTS", str(left)))
        c.close()
        now = info(q, left)
        return seen[-1] or (now["group"] == "serving" and
                            int(now["epoch"]) > epoch)
    wait_until("there is a leader", known)
    return seen[-1]


def lose_what_a_leader_lacks(q, left=2):
    """It is stopped until the others have dropped entries that it lacks, and
    is elected then. The acceptor informs it of the end of the log, and ends
    long before its snapshot, one chunk per iteration, is complete. @return
    keys written, positions decided; None if it was not elected."""
    pid = pids(q)
    os.kill(pid[left], signal.SIGSTOP)
    count = write_more_than_is_kept(q, 0)
    roles = info(q, 0)  # without the third one they keep their roles
    leader, acceptor = int(roles["leader"]), int(roles["acceptor"])
    check("roles", {leader, acceptor}, {0, 1})
    decided = position(q, acceptor, acceptor)
    os.kill(pid[leader], signal.SIGKILL)
    os.kill(pid[left], signal.SIGCONT)
    if not laggard_leads(q, left, int(roles["epoch"])):
        return None
    os.kill(pid[acceptor], signal.SIGKILL)
    wait_until("it reports it", lambda: info(q, left)["group"] == "incomplete")
    return count, decided


def is_incomplete(q, count, decided, left=2):
    c = q.client(left)
    check("refused", str(c.call("SET", "key", "1")), INCOMPLETE)
    c.close()
    has = position(q, left, left)
    status, said, wrong = recover(q, "--yes", replica=left)
    check("status", (status, wrong), (0, ""))
    assert "no replica that answers has the rest" in said, said
    lost = re.search(r"Positions (\d+) to (\d+) may be lost", said)
    assert lost is not None, said
    check("from", int(lost.group(1)), has + 1)
    assert int(lost.group(2)) >= decided > has, (said, decided)
    complete(q)
    c = q.client(0)
    kept = c.call("EXISTS", *["big%d" % i for i in range(count)])
    assert kept < 16, kept  # its channel held a few when it woke up
    c.close()
    writable(q)


def test_a_leader_that_lacks_lost_entries_reports_it():
    """On a busy machine another one may be elected: then the test repeats."""
    for _ in range(3):
        with Quoind(PATH, args=PROCESS) as q:
            fill(q)
            lost = lose_what_a_leader_lacks(q)
            if lost is not None:
                is_incomplete(q, *lost)
                return
    raise AssertionError("the laggard was never elected")


def test_a_client_with_unknown_writes_continues():
    """Writes whose outcome is unknown are applied at most once; after them the
    same replica writes again."""
    with Quoind(PATH, args=PROCESS) as q:
        check("count", q.client(0).call("INCR", "count"), 1)
        for i in range(3):
            check("applied", q.client(i).call("GET", "count"), b"1")
        roles = info(q, 0)  # right before: a starved leader is deposed
        both = int(roles["leader"]), int(roles["acceptor"])
        left = ({0, 1, 2} - set(both)).pop()
        pid = q.pids()
        stay = [q.client(left) for _ in range(3)]  # its clients are the most
        c = stay[0]
        for i in both:
            os.kill(pid[i], signal.SIGSTOP)
        c.send(Client.encode("INCR", "count") * 3)
        for i in both:
            os.kill(pid[i], signal.SIGKILL)
        for _ in range(3):
            got = c.reply()
            assert isinstance(got, Error), (got, roles["epoch"],
                                            info(q, left)["epoch"])
        stopped(q, left)
        check("status", recover(q, "--yes")[0], 0)
        wait_until("it writes", lambda: c.call("SET", "key", "1") == b"OK")
        before = int(c.call("GET", "count"))
        assert before <= 4, before  # each once at most
        check("continues", c.call("INCR", "count"), before + 1)
        for c in stay:
            c.close()
        agree(q)


def others_back(q, left):
    """Waits until the other two are complete again. @return them."""
    for i in range(3):
        wait_until("replica %d is back" % i, lambda:
                   part(q, left, i).get("state") == "online")
    return sorted({0, 1, 2} - {left})


def order(q, by, chosen, position):
    c = q.client(by)
    got = c.call("QUOIN", "RECOVER", info(q, by)["epoch"], str(chosen),
                 str(position))
    c.close()
    return got


def test_a_refusal_leaves_everything_as_it_was():
    """The user has confirmed a longer log than the chosen replica has. Only
    the chosen one knows, and it is asked before any change."""
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        left = lose_both(q)
        stopped(q, left)
        by = others_back(q, left)[0]
        stopped(q, by)
        before = pids(q)
        has = position(q, by, left)
        for asked in by, left:
            check("refused", str(order(q, asked, left, has + 1)),
                  "ERR not recovered from replica %d: it now has less than you "
                  "agreed to; run quoin recover again" % left)
        assert q.logged("not recovered from replica %d: it now has less" % left)
        check("nobody was ended", pids(q), before)
        check("state", info(q, by)["group"], "stopped")
        status, said, wrong = recover(q, "--yes")
        check("status", (status, wrong), (0, ""))
        complete(q)
        writable(q)


def test_a_chosen_replica_that_dies_ends_no_other():
    """It is stopped before the request, and dies then. The other two have
    copies, and the group continues from one of them."""
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        left = lose_both(q)
        stopped(q, left)
        others = others_back(q, left)
        before = pids(q)
        by = others[0]
        stopped(q, by)
        has = str(position(q, by, left))
        epoch = info(q, by)["epoch"]
        os.kill(before[left], signal.SIGSTOP)
        asked = "QUOIN", "RECOVER", epoch, str(left), has
        c = q.client(by)
        c.send(Client.encode(*asked))
        other = q.client(by)
        got = other.call(*asked)  # so the first one was passed on
        assert "it is being recovered already" in str(got), got
        other.close()
        os.kill(before[left], signal.SIGKILL)
        check("refused", str(c.reply()), "ERR not recovered from replica %d: "
              "it has ended; run quoin recover again" % left)
        c.close()
        complete(q)
        for i in others:
            check("untouched", pids(q)[i], before[i])
        for i in others:
            stopped(q, i)
        status, said, wrong = recover(q, "--yes", replica=by)
        check("status", (status, wrong), (0, ""))
        complete(q)
        writable(q)


def would_lead(q, by):
    """The leader of the epoch in which the group has stopped: INFO names none.
    """
    c = q.client(by)
    said = c.call("QUOIN", "EVENTS", str(by)).decode()
    c.close()
    return int(re.findall(r" epoch leader=(\d)", said)[-1])


def test_the_tool_reports_the_reason_of_a_refusal():
    """Immediately, in one line: the chosen replica is stopped when it is
    asked, or another leader has been elected by then. Nothing changes; a
    second attempt succeeds."""
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        left = lose_both(q)
        stopped(q, left)
        by = others_back(q, left)[0]
        stay = [q.client(left) for _ in range(3)]  # so that it is chosen
        stopped(q, by)
        before = pids(q)
        status, wrong = recover_by_hand(
            q, by, lambda: os.kill(before[left], signal.SIGSTOP))
        os.kill(before[left], signal.SIGCONT)
        check("status", status, 1)
        assert wrong.endswith(
            "not recovered from replica %d: it does not answer; resume it, "
            "or end it; run quoin recover again\n" % left), wrong
        check("one line", wrong.count("\n"), 1)
        check("no replica was ended", pids(q), before)
        wait_until("replica %d turns again" % left, lambda:
                   part(q, by, left).get("state") == "online")
        stopped(q, by)
        status, wrong = recover_by_hand(
            q, by, lambda: kill_replicas(q, would_lead(q, by)))
        check("status", status, 1)
        assert ": ERR not recovered from replica %d: " % left in wrong, wrong
        check("one line", wrong.count("\n"), 1)
        for c in stay:
            c.close()
        complete(q)
        stopped(q, by)
        check("asked again", recover(q, "--yes", replica=by)[0], 0)
        complete(q)
        writable(q)


def test_another_supervisor_recovers_it():
    """The first one dies before the two; without one nothing is recovered. The
    second finds one replica and starts the others."""
    with Quoind(PATH, args=PROCESS) as q:
        fill(q)
        roles = info(q, 0)
        both = int(roles["leader"]), int(roles["acceptor"])
        left = ({0, 1, 2} - set(both)).pop()
        stay = [q.client(left) for _ in range(3)]
        kill_supervisor(q)
        kill_replicas(q, *both)
        alone(q, left)
        c = stay[0]
        check("no majority", recover(q, "--yes", replica=left)[0], 1)
        adopt(q, 1)
        stopped(q, left)
        check("supervisor", info(q, left)["supervisor"], "up")
        status, said, wrong = recover(q, "--yes", replica=left)
        check("status", (status, wrong), (0, ""))
        complete(q)
        check("the client of the survivor", c.call("PING"), b"PONG")
        for c in stay:
            c.close()
        writable(q)


def test_a_healthy_group_refuses():
    for kind in "process", "memory":
        why = "the group serves: there is nothing to recover"
        with Quoind(PATH, args=["--acceptor", kind]) as q:
            before = q.pids()
            status, said, wrong = recover(q, "--yes")
            check("status", (status, said), (1, ""))
            assert why in wrong and wrong.count("\n") == 1, wrong
            c = q.client(0)
            got = c.call("QUOIN", "RECOVER", info(q, 0)["epoch"], "2", "0")
            assert isinstance(got, Error), got
            got = c.call("QUOIN", "RECOVER", "0", "8", "0")
            assert "no such replica" in str(got), got
            check("write", c.call("SET", "key", "1"), b"OK")
            c.close()
            check("all live", q.pids(), before)


def test_how_it_is_asked():
    def run(*args):
        done = subprocess.run([QUOIN, "recover", *args], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
        return done.returncode, done.stderr.decode()
    status, wrong = run()
    check("missing --to", status, 2)
    assert "--to" in wrong, wrong
    for address, why in (("nonsense", "expected HOST:PORT"),
                         ("127.0.0.1:65537", "must be 1 to 65535")):
        status, wrong = run("--to", address)
        check(address, status, 2)
        assert why in wrong, wrong
    check("no server", run("--to", "127.0.0.1:1")[0], 1)


main(sys.argv[3:], globals())
