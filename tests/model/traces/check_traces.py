#!/usr/bin/env python3
"""Check what the machine does against the models of its acceptors.

usage: check_traces.py RUNS good RECORDER [SEEDS [FROM]]   runs that must all be accepted
       check_traces.py RUNS mutants RECORDER_MUTANTS [NAME...]
                                                   defects that must be refused
       check_traces.py RUNS file TRACE [SLOT...]   one trace, and the line that is refused

RUNS is process (onepaxos.pml), memory (memacceptor.pml) or utility (utility.pml), of
tests/sim/paxos, and then RECORDER is record_runs of the build, RECORDER_MUTANTS is
record_runs_mutants; or timed_process or timed_memory, of the timed machine, with
record_timed and record_timed_mutants. SEEDS (40, timed 20) are those from FROM (1) on that fit the model. Each run
is checked for PAIRS pairs of slots, or so many indices of the utility log. Exit status:
0 as it must be, 1 not so, 2 it could not be tried.
"""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

import project
import project_utility

HERE = os.path.dirname(os.path.abspath(__file__))
PAIRS = 12  # of neighbouring slots, for which a run is checked
TRIES = 60  # seeds, for a defect
STATEMENTS = 400  # of the model, in a record, at most

# A seed from which on a defect is near; the field, or the word, of its refusal;
# and whether the run then ends by itself: no invariant of the simulator, and no
# assertion of the machine, has seen the defect in it.
MUTANTS = {
    "NO_ADOPT": (125, "log", False),
    "NO_PROMISE": (405, "promised", True),
    "NO_HANDOFF": (53, "staged", True),
    "NO_FREEZE": (125, "st_from", True),
    "UNADOPTED": (1153, "the end of its proposals", True),
    "NO_UL": (53, "idx", True),
    "REUSE_SLOT": (53, "log", False),
    "EARLY_DECIDE": (53, "not decided", False),
    "NO_STEP_DOWN": (740, "role", True),
    "ACK_EARLY": (405, "lrn", False),
    "SEAL_LIES": (2713, "cep", True),
    "STALE_PREPARED": (7211, "role", True),
    "STAGE_LOST": (136, "st_from", True),
    "LATE_STAGE": (162, "st_from", True),
    "STAGE_AGAIN": (162, "st_from", True),
}


MEMORY_MUTANTS = {
    "NO_EPOCH": (454, "we", True),
    "STALE_HI": (391, "take-over", False),
    "LEARN_EARLY": (245, "nxt", False),
    "REUSE_SLOT": (1, "nxt", False),
    "NO_STEP_DOWN": (245, "act", False),
    "NO_UL": (1, "pk", False),
}

TIMED_MUTANTS = {
    "NO_ADOPT": (3, "log", False),
    "NO_PROMISE": (65, "promised", True),
    "NO_HANDOFF": (3, "staged", True),
    "NO_FREEZE": (3, "st_from", True),
    "UNADOPTED": (3, "the end of its proposals", False),
    "NO_UL": (1, "idx", True),
    "REUSE_SLOT": (1, "log", False),
    "EARLY_DECIDE": (3, "not decided", True),
    "NO_STEP_DOWN": (1, "role", True),
    "STAGE_LOST": (86, "st_from", True),
    "LATE_STAGE": (86, "st_from", True),
    "OLD_SEAL": (86, "cep", True),
}

TIMED_MEMORY_MUTANTS = {
    "LEARN_EARLY": (4, "nxt", False),
    "REUSE_SLOT": (2, "nxt", False),
    "NO_STEP_DOWN": (29, "act", True),
    "NO_UL": (4, "pk", True),
}

UTILITY_MUTANTS = {
    "U_SILENT": (92, "value voted for", True),
    "U_COUNT": (125, "the promises of a majority", True),
    "U_BALLOT": (92, "the vote", True),
    "U_OWN_VALUE": (136, "value", True),
    "U_LATE_RECORD": (53, "a promise that is not recorded", True),
    "U_AMNESIA": (2362, "the promise", True),
    "NO_UL": (53, "the promises of a majority", True),
}

# Good runs that were refused once.
LATE_STAGED = 18671  # STAGED of an older epoch came behind that of the newest

# Of RUNS: the model; what of a run is checked; the seeds, by their acceptor; defects; good
# runs in CI, and seeds beside them; how a trace is read and projected; kinds of records, all
# of which must occur.
Runs = collections.namedtuple("Runs", "model of acceptor mutants seeds also read project kinds")

RUNS = {
    "process": Runs("onepaxos", "pairs of slots", "process", MUTANTS, 40, [LATE_STAGED],
                    project.Trace, project.project, project.RECEIVED),
    "memory": Runs("memacceptor", "pairs of slots", "memory", MEMORY_MUTANTS, 40, [],
                   project.Trace, project.project_memory, {}),
    "utility": Runs("utility", "indices", "process", UTILITY_MUTANTS, 40, [],
                    project_utility.Trace, project_utility.project, project_utility.KINDS),
}
RUNS["timed_process"] = RUNS["process"]._replace(mutants=TIMED_MUTANTS, seeds=20, also=[])
RUNS["timed_memory"] = RUNS["memory"]._replace(mutants=TIMED_MEMORY_MUTANTS, seeds=20)

BOUNDS = {"onepaxos": [f"-DN={project.NODES}", f"-DE={project.EPOCHS}"],
          "memacceptor": [f"-DNO={project.NODES}", f"-DE={project.EPOCHS}"],
          "utility": [f"-DR0={project_utility.BALLOTS // 2}"]}


class Broken(Exception):
    """It could not be tried."""


def run(command, cwd=None, env=None, seconds=600):
    try:
        return subprocess.run(command, cwd=cwd, env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=seconds, check=False)
    except FileNotFoundError as error:
        raise Broken(f"{command[0]} is not there: ./dev deps, and build") from error
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{command[0]}: no end within {seconds} s") from error


class Replay:
    """The verifier that spin makes of a replay, for any number of traces."""

    def __init__(self, folder, runs):
        self.folder, self.runs = folder, runs
        self.taken = collections.Counter()  # messages that the model took, by kind
        os.symlink(HERE, f"{folder}/traces")  # as pan.c names it: the same in every clone
        made = run(["spin", "-a", *BOUNDS[runs.model],
                    f"traces/replay_{runs.model}.pml"], folder)
        if made.returncode != 0 or not os.path.exists(f"{folder}/pan.c"):
            raise Broken("spin: " + (made.stdout + made.stderr)[-500:])
        ccache = ["ccache"] if shutil.which("ccache") else []
        made = run([*ccache, "gcc", "-w", "-O1", "-DSAFETY", "-DNOREDUCE", "-DVECTORSZ=8192",
                    "-I", "traces", "-c", "pan.c"], folder)
        if made.returncode == 0:
            made = run(["gcc", "-o", "pan", "pan.o"], folder)
        if made.returncode != 0:
            raise Broken("gcc: " + made.stderr[-500:])

    def check(self, records):
        """@return None: accepted; or (line, what the model refuses)."""
        name = os.path.join(self.folder, "trace")
        with open(name, "w", encoding="ascii") as f:
            for record in records:
                f.write(" ".join(map(str, record)) + "\n")
        depth = 10000 + STATEMENTS * len(records)
        done = run(["./pan", "-E", f"-m{depth}", "-w14"], self.folder,
                   {**os.environ, "QN_TRACE": name})
        last = (done.stdout.strip().splitlines() or [""])[-1]
        if last.startswith(f"accepted {len(records)} "):
            for kind, count in enumerate(last.split()[2:], 1):
                self.taken[kind] += int(count)
            return None
        if last.startswith("refused line ") and "max search depth" not in done.stdout:
            line, what = last[len("refused line "):].split(": ", 1)
            return int(line), what
        raise Broken("pan: " + (done.stdout + done.stderr)[-1000:])

    def check_pairs(self, trace, slots):
        """@return (how many pairs, or indices, were checked, (slot, line, what) of a refusal
        or None)."""
        checked = 0
        for first in slots:
            try:
                records = self.runs.project(trace, first)
            except (project.TooLong, project_utility.TooLong):
                continue
            checked += 1
            refusal = self.check(records)
            if refusal is not None:
                return checked, (first, *refusal)
        return checked, None


def record(runs, recorder, *arguments):
    """@return (the trace, whether the run ended by itself)."""
    done = run([recorder, "run", *map(str, arguments)])
    if done.returncode == 2:
        raise Broken(done.stderr.strip())
    return runs.read(done.stdout), done.returncode == 0


def seeds_of(runs, recorder, start, count):
    done = run([recorder, runs.acceptor, str(start), str(count)])
    if done.returncode != 0:
        raise Broken(done.stderr.strip())
    return [int(word) for word in done.stdout.split()]


def next_seeds(runs, recorder, start):
    """TRIES of them, each looked for when it is needed: to look costs more than to check,
    and the first mostly does."""
    for _ in range(TRIES):
        seed, = seeds_of(runs, recorder, start, 1)
        yield seed
        start = seed + 1


# --------------------------------------------------------------------- good --

def print_taken(taken, numbers):
    """What the model took of the runs. @return the kinds that it never did."""
    kinds = sorted((number, name) for name, number in numbers.items())
    print("taken:", ", ".join(f"{name} {taken[number]}" for number, name in kinds))
    return [name for number, name in kinds if taken[number] == 0]


def good(replay, argv):
    count, start = [int(a) for a in argv[1:]] + [replay.runs.seeds, 1][len(argv) - 1:]
    seeds = seeds_of(replay.runs, argv[0], start, count)
    seeds += replay.runs.also if len(argv) == 1 else []
    pairs = epochs = cut = status = 0
    for seed in seeds:
        trace, ended = record(replay.runs, argv[0], seed)
        checked, refusal = replay.check_pairs(trace, trace.slots_of_interest(PAIRS))
        pairs, epochs, cut = pairs + checked, epochs + len(trace.epoch), cut + (not trace.whole)
        if refusal is not None or not ended or checked == 0:
            print(f"seed {seed}: {refusal or 'not a run'}", flush=True)
            status = 1
    print(f"{len(seeds)} runs, {pairs} {replay.runs.of}, {epochs} epochs; "
          f"{cut} runs only until they exceed the model")
    missing = print_taken(replay.taken, replay.runs.kinds) if replay.runs.kinds else []
    if missing and count >= replay.runs.seeds:
        print("the model has taken no", ", ".join(missing))
        return 1
    return status


# ------------------------------------------------------------------ mutants --

def refused(replay, recorder, name):
    """@return whether a run shows the defect as it must be shown."""
    near, word, silent = replay.runs.mutants[name]
    for seed in next_seeds(replay.runs, recorder, near):
        trace, ended = record(replay.runs, recorder, seed, name)
        _, refusal = replay.check_pairs(trace, trace.slots_of_interest(PAIRS))
        if refusal is not None and word in refusal[2] and (ended or not silent):
            how = "no invariant saw it" if ended else "an invariant saw it, too"
            print(f"{name}: seed {seed}, line {refusal[1]} of {trace.length}, {how}: "
                  f"{refusal[2]}", flush=True)
            return True
    print(f"{name}: accepted, or not refused as it must be")
    return False


def mutants(replay, argv):
    names = argv[1:] or replay.runs.mutants
    return 0 if all([refused(replay, argv[0], name) for name in names]) else 1


# --------------------------------------------------------------------- file --

def one_file(replay, argv):
    with open(argv[0], encoding="ascii") as f:
        text = f.read()
    trace = replay.runs.read(text)
    slots = [int(a) for a in argv[1:]] or trace.slots_of_interest(PAIRS)
    checked, refusal = replay.check_pairs(trace, slots)
    print(f"{trace.length} lines, {checked} {replay.runs.of}: ", end="")
    if refusal is None:
        print("accepted")
        return 0
    first, line, what = refusal
    print(f"that from {first} on refused\n{what}\nline {line}: "
          f"{text.splitlines()[line - 1]}")
    print("nodes of the model:", " ".join(f"{node}={life}" for life, node in trace.lives.items()))
    print("epochs of the model:", " ".join(f"{e}={index}" for index, e in trace.epoch.items()))
    return 1


def main(argv):
    verbs = {"good": good, "mutants": mutants, "file": one_file}
    if len(argv) < 3 or argv[0] not in RUNS or argv[1] not in verbs:
        print(__doc__, file=sys.stderr)
        return 2
    folder = tempfile.mkdtemp(prefix="quoin-traces-")
    try:
        return verbs[argv[1]](Replay(folder, RUNS[argv[0]]), argv[2:])
    except Broken as broken:
        print(f"check_traces.py: {broken}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
