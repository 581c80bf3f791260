"""The verdicts of soak_load.py, soak_loss.py and soak_join.py, and the kinds
of unavailability windows of unavailability.py: each verdict is tested with a
passing and a failing case.

Usage: test_verdicts.py [NAME...]
"""
import collections
import os
import sys

from tests.process.soak import unavailability
from tests.process.lib import verdicts
from tests.process.lib.checks import check, main

LINE = "replica 1: error: the group has stopped: its leader was lost, and no " \
       "replica has all that its memory does not keep any more. Replica 1 has " \
       "most, all positions up to %d; %d to %d are decided, and lost; %d to %d " \
       "are in the lost leader's memory, and of no use without them. To go on " \
       "without all of these: quoin recover"
GOOD = LINE % (40, 41, 60, 61, 99)
LEFT = {1: 40, 2: 38}


def convicts(what, wrong, text):
    assert len(wrong) == 1 and text in wrong[0], "%s: %s" % (what, wrong)


# ---- loss ----

def test_a_stopped_group_that_reports_the_loss_passes():
    check("wrong", verdicts.stopped(["other", GOOD], LEFT, 99), [])


def test_the_line_is_printed_once():
    convicts("none", verdicts.stopped(["other"], LEFT, 99), "0 error lines")
    convicts("two", verdicts.stopped([GOOD, GOOD], LEFT, 99), "2 error lines")
    convicts("a warning", verdicts.stopped(
        [GOOD.replace("error", "warning")], LEFT, 99), "0 error lines")


def test_the_positions_are_those_of_the_loss():
    convicts("too much", verdicts.stopped([GOOD], {1: 39, 2: 38}, 99), "kept")
    convicts("too little", verdicts.stopped([GOOD], {1: 40, 2: 41}, 99), "kept")
    convicts("another", verdicts.stopped([GOOD], {1: 38, 2: 40}, 99), "kept")
    convicts("leader", verdicts.stopped([GOOD], LEFT, 100), "had 100")
    for gap in ((40, 42, 60, 61, 99), (40, 41, 40, 41, 99), (40, 41, 60, 62, 99),
                (40, 41, 120, 121, 99)):
        convicts(str(gap), verdicts.stopped([LINE % gap], LEFT, 99), "gaps")


def test_a_serving_group_has_every_marker_and_reports_no_loss():
    check("all there", verdicts.lives_on(["other"], 10, 0), [])
    convicts("none", verdicts.lives_on([], 0, 0), "no marker")
    convicts("lost", verdicts.lives_on([], 10, 1),
             "lost without a report: 1 of 10")
    convicts("told", verdicts.lives_on([GOOD], 10, 0), "there is none")


def test_the_status_shows_a_loss():
    check("well", verdicts.ended(0, False), [])
    check("lost", verdicts.ended(1, True), [])
    convicts("in silence", verdicts.ended(0, True), "exit status 0")
    convicts("without", verdicts.ended(1, False), "exit status 1")


# ---- load ----

Looks = collections.namedtuple("Looks", "count missed over")
SUMMARY = {"errors": 0, "disconnects": 0, "unanswered": 0, "wrong": 0,
           "ops_per_s": 10, "first_error": "e", "first_wrong": "w",
           "latency_us": {"p50": 2000}}
CALM = Looks(5, {}, {"RssAnon": -1, "RssShmem": 0})


def test_a_load_without_violations_passes():
    check("calm", verdicts.load(SUMMARY, 0, CALM), [])
    check("calm", verdicts.load(SUMMARY, 0, CALM, p50_before=1.0), [])


def test_followers_serve_as_well_as_the_leader():
    check("fair", verdicts.fair(1, [20.0, 10.0, 5.0]), [])
    convicts("slow", verdicts.fair(1, [20.1, 10.0, 5.0]), "p50 at replica 0")


def test_each_violation_of_a_load_is_reported():
    for name in ("errors", "disconnects", "unanswered", "wrong"):
        convicts(name, verdicts.load({**SUMMARY, name: 2}, 0, CALM), "2 errors")
    convicts("silent", verdicts.load({**SUMMARY, "ops_per_s": 0}, 0, CALM),
             "no write")
    convicts("behind", verdicts.load(SUMMARY, 1, CALM), "1 snapshots")
    convicts("not kept", verdicts.load(
        SUMMARY, 0, CALM._replace(missed={2: 3})), "replica 2 not kept")
    convicts("blind", verdicts.load(SUMMARY, 0, CALM._replace(count=0)),
             "no replica")
    convicts("slower", verdicts.load(SUMMARY, 0, CALM, p50_before=0.9), "p50")


def test_memory_has_limits():
    for name in ("RssAnon", "RssShmem"):
        fat = CALM._replace(over={name: 1})
        convicts(name, verdicts.load(SUMMARY, 0, fat), name + " 1 MiB above")
        check(name, verdicts.load(SUMMARY, 0, fat, bars=False), [])


# ---- join ----

def test_a_join_leaves_the_others_writing():
    check("short", verdicts.joined(3000), [])
    convicts("long", verdicts.joined(3001), "waited")


def test_a_starved_follower_leaves_the_others_their_rate():
    check("kept", verdicts.starved(100, 80), [])
    convicts("slowed", verdicts.starved(100, 79), "slowed to 0.79")
    convicts("nothing", verdicts.starved(0, 0), "no rate")


def test_a_join_under_load_ends():
    check("good", verdicts.rejoined(1, 3, 100, 20), [])
    convicts("long", verdicts.rejoined(1, 3.1, 100, 20), "3.1 times")
    convicts("stand", verdicts.rejoined(1, 3, 100, 19), "stand")
    convicts("nothing", verdicts.rejoined(1, 3, 0, 0), "no rate")


# ---- unavailability windows ----

def samples(late=0.0, **lives):
    """Two seconds of three replicas; `lives`: for each, (ran, waited) ns per
    sample, and its state."""
    found = []
    for n in range(41):
        processes = {name: ["quoind-" + name[1:], state, ran * n, waited * n, 0,
                            "ep_poll"]
                     for name, (ran, waited, state) in lives.items()}
        found.append([n * unavailability.EVERY_S, late, {"stolen": n * 1000000},
                      processes, {}])
    return found


STEP = int(unavailability.EVERY_S * 1e9)
ASLEEP, WAITS, RUNS, STOPPED = (0, 0, "S"), (0, STEP, "R"), (STEP, 0, "R"), \
    (0, 0, "T")


def test_an_unavailability_window_has_a_kind():
    for kind, late, lives in (
            ("asleep", 0.0, (ASLEEP, ASLEEP, ASLEEP)),
            ("cores", 0.0, (WAITS, WAITS, ASLEEP)),
            ("work", 0.0, (RUNS, RUNS, ASLEEP)),
            ("faults", 0.0, (STOPPED, STOPPED, WAITS)),
            ("asleep", 0.0, (STOPPED, ASLEEP, ASLEEP)),
            ("machine", unavailability.EVERY_S, (WAITS, WAITS, WAITS))):
        got = unavailability.told(samples(late, p0=lives[0], p1=lives[1],
                                    p2=lives[2]))
        check("%s of %s" % (kind, lives), got[0], kind)
        check("lines", len(got[1]), 4)


def test_the_sampler_sees_waiting_processes():
    """It finds this running process, from the kernel's own counters."""
    before = unavailability.process(os.getpid())
    while unavailability.process(os.getpid())[2] < before[2] + 1000000:
        pass
    check("state", before[1], "R")
    check("no process", unavailability.process(1 << 30), None)


QUEUES = """cfs_rq[0]:/
  .zero_vruntime                 : 7.0

cfs_rq[0]:/autogroup-9
  .nr_queued                     : 2
  .se->vruntime                  : %f
  .se->sum_exec_runtime          : %f

cfs_rq[1]:/a/b
  .se->vruntime                  : 5.5
  .se->sum_exec_runtime          : 6.5
"""


def test_the_users_of_the_core_are_reported():
    check("queues", unavailability.queues(QUEUES % (1.5, 2.5)), {
        "0 /autogroup-9": {"vruntime": 1.5, "sum_exec_runtime": 2.5},
        "1 /a/b": {"vruntime": 5.5, "sum_exec_runtime": 6.5}})
    seen = samples(p0=WAITS, p1=WAITS, p2=WAITS)
    seen[3][4] = unavailability.queues(QUEUES % (1, 100))
    seen[9][4] = unavailability.queues(QUEUES % (1.5, 400))
    check("lines", unavailability.told(seen)[1][4:], [
        "queues, for 300 ms:", "  core and group 0 /autogroup-9: ran 300 ms, "
        "its virtual time moved by 0.5 ms"])


def test_a_ready_process_that_does_not_run_is_stuck():
    stuck, ready = unavailability.Stuck(), ["quoind-0", "R", 5, 0, 0, ""]
    check("first", stuck.any(1.0, {7: ready}), False)
    check("late", stuck.any(1.0 + unavailability.STUCK_S, {7: ready}), True)
    check("has run", stuck.any(1.3, {7: ["quoind-0", "R", 6, 0, 0, ""]}), False)
    check("sleeps", stuck.any(9.0, {7: ["quoind-0", "S", 6, 0, 0, ""]}), False)


if __name__ == "__main__":
    main(sys.argv[1:], globals())
