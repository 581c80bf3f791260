"""The requirements of soak_load.py, soak_loss.py and soak_join.py, without a
server: results go in, violations come out, each in a few words. Pure.
"""
import re

MIB = 1 << 20
WRITE_MS = 3000.0    # no write waits longer during a join
P50_TIMES = 2.0      # a follower's p50, relative to the leader's
RATE_STARVED = 0.8   # of the others' rate, beside a starved follower
RATE_REJOIN = 0.2    # of that rate, in every second of a join
JOIN_TIMES = 3.0     # a join under load, relative to one without

# The line that reports a stopped group with the memory acceptor.
STOPPED = re.compile(
    r" error: .*the group has stopped: .*Replica (?P<who>\d+) has most, all "
    r"positions up to (?P<kept>\d+); (?P<lost>\d+) to (?P<upto>\d+) are decided, "
    r"and lost; (?P<lo>\d+) to (?P<hi>\d+) are in the lost leader's memory")


# ---- loss ----

def told(lines):
    """[{who, kept, lost, upto, lo, hi}]: positions, for each line that reports
    that the group has stopped."""
    found = [STOPPED.search(line) for line in lines]
    return [{name: int(text) for name, text in m.groupdict().items()}
            for m in found if m]


def stopped(lines, learned, before):
    """Violations of a group that reports that it has stopped.

    `learned`: {replica: position} of the remaining replicas. `before`: a
    position that the leader had applied before it died.
    """
    said = told(lines)
    if len(said) != 1:
        return ["%d error lines with both positions" % len(said)]
    t = said[0]
    wrong = []
    most = max(learned.values())
    if t["kept"] != most or learned.get(t["who"]) != most:
        wrong.append("kept up to %d at replica %d is reported; actual: %s" % (
            t["kept"], t["who"], learned))
    if not t["kept"] + 1 == t["lost"] <= t["upto"] == t["lo"] - 1 <= t["hi"]:
        wrong.append("positions with gaps: %s" % t)
    if t["hi"] < before:
        wrong.append("lost up to %d is reported; the leader had %d" % (
            t["hi"], before))
    return wrong


def lives_on(lines, kept, missing):
    """Violations of a group whose leader has died and that serves: none of the
    `kept` acknowledged markers is missing, and no loss is reported."""
    wrong = []
    if kept == 0:
        wrong.append("no marker was acknowledged")
    if missing:
        wrong.append("lost without a report: %d of %d markers" %
                     (missing, kept))
    elif told(lines):
        wrong.append("a loss is told, and there is none")
    return wrong


def ended(status, stopped_at_end):
    """The exit status of a server after a request to end."""
    if stopped_at_end and status == 0:
        return ["exit status 0 after a loss"]
    if not stopped_at_end and status != 0:
        return ["exit status %d" % status]
    return []


# ---- load ----

def fair(leader, p50):
    """`p50`: {replica: p50 of its clients}, under the same load."""
    return ["p50 at replica %d %.1f ms, at the leader %.1f" % (
        i, x, p50[leader]) for i, x in enumerate(p50)
        if x > P50_TIMES * p50[leader]]


def load(summary, needed, looks, bars=True, p50_before=None):
    """Violations of a load without a fault: `summary` of quoin load, the
    number of snapshots `needed`, `looks` (heavy.Looks). `bars`: check memory,
    too."""
    wrong = []
    errors = failed(summary)
    if errors:
        wrong.append("%d errors: %s" % (
            errors, summary["first_error"] or summary["first_wrong"]))
    if summary["ops_per_s"] == 0:
        wrong.append("no write was answered")
    if needed:
        wrong.append("%d snapshots" % needed)
    if looks.count == 0:
        wrong.append("no replica was sampled")
    for i, n in sorted(looks.missed.items()):
        wrong.append("replica %d not kept, in %d samples" % (i, n))
    for name, over in looks.over.items() if bars else ():
        if over > 0:
            wrong.append("%s %d MiB above its limit" % (name, -(-over // MIB)))
    if p50_before is not None and \
            summary["latency_us"]["p50"] > 2 * p50_before * 1000:
        wrong.append("p50 was %.1f ms" % p50_before)
    return wrong


def failed(summary):
    """Requests that were not answered correctly."""
    return summary["errors"] + summary["disconnects"] + \
        summary["unanswered"] + summary["wrong"]


# ---- join ----

def joined(longest_ms):
    """Violations of a join: the longest time without a write at the others."""
    return ["writes waited"] if longest_ms > WRITE_MS else []


def starved(before, during):
    """Violations of the others' rates."""
    if before <= 0:
        return ["no rate before"]
    if during < RATE_STARVED * before:
        return ["the others are slowed to %.2f" % (during / before)]
    return []


def rejoined(alone, loaded, before, least):
    """Seconds of a join without load and under load; the others' rate before,
    and in the worst second."""
    wrong = []
    if loaded > JOIN_TIMES * alone:
        wrong.append("%.1f times as long" % (loaded / alone))
    if before <= 0:
        wrong.append("no rate before")
    elif least < RATE_REJOIN * before:
        wrong.append("the others came to a stand")
    return wrong
