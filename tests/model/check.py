#!/usr/bin/env python3
"""Check the models with spin: good ones exhaustively, defects until found.

usage: check.py [MODEL...]     all cases of these models (all without names)
       check.py --list         the cases, one per line
       check.py MODEL.pml [-DKNOB[=N]...] [--bad] [--minutes N] [--gib N]
                               one model with these knobs, by hand

A case passes if the model is searched to its end without an error, or, for a
defect, if an assertion fails. A search that is cut off by depth, memory or time
proves nothing and fails either way, as does one that is too small to be true.
Exit status: 0 all pass, 1 some fail, 2 it could not be tried.

Two searches run at a time (QN_MODEL_JOBS). Files are made in a directory of
their own that is removed in the end; QN_MODEL_DIR keeps them, trails included.
"""
import concurrent.futures
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
DEPTH = 100000
LARGE = 900000  # states, for which -O2 pays: it takes a quarter of the time of -Og


class Broken(Exception):
    """The case could not be tried."""


def run(command, cwd, minutes):
    try:
        done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True,
                              timeout=60 * minutes, check=False)
    except FileNotFoundError as error:
        raise Broken(f"{command[0]} is not installed: ./dev deps") from error
    except subprocess.TimeoutExpired as error:
        raise Broken(f"no end within {minutes} minutes") from error
    return done


def compile_search(how, folder):
    """pan.c, as @a how says. ccache, where it is installed, keeps what it was compiled to:
    most searches of CI take less time than that."""
    ccache = ["ccache"] if shutil.which("ccache") else []
    made = run([*ccache, "gcc", "-w", "-DSAFETY", *how, "-c", "pan.c"], folder, 5)
    if made.returncode == 0:
        made = run(["gcc", "-o", "pan", "pan.o"], folder, 1)
    if made.returncode != 0:
        raise Broken("gcc: " + made.stdout[-500:])


def verifier(case, folder, gib):
    """Compile the search. A defect is found long before an optimizer pays, and so
    is a small model searched: onepaxos takes 9.5 s to compile with -O2."""
    knobs = [f"-D{knob}" for knob in case["knobs"]]
    model = case["model"] + ".pml"  # as pan.c names it: the same in every clone
    shutil.copy(os.path.join(HERE, model), folder)
    made = run(["spin", "-a", *knobs, model], folder, 1)
    if made.returncode != 0 or not os.path.exists(f"{folder}/pan.c"):
        raise Broken("spin: " + made.stdout[-500:])
    # The states of CI fit into memory as they are: to mask or to collapse each of
    # onepaxos takes a quarter of the time.
    how = ["-O0", *case["how"]] if case["bad"] else [
        "-Og" if 0 < case["least"] < LARGE else "-O2", *(case["how"] or ["-DNOCOMP"])]
    compile_search([*how, f"-DMEMLIM={int(1024 * gib)}"], folder)


def verdict(case, out):
    """(passes, states, what was seen), from the words of pan."""
    errors = re.search(r"errors: (\d+)", out)
    stored = re.search(r"(\d+) states, stored", out)
    states = int(stored.group(1)) if stored else 0
    violated = re.search(r"^pan:\d+: (.*)", out, re.M)
    if errors is None:
        return False, states, "the search did not end by itself"
    if case["bad"]:
        found = violated is not None and "assertion violated" in violated.group(1)
        return found, states, "found" if found else "NOT found"
    if int(errors.group(1)) != 0:
        return False, states, violated.group(1) if violated else "error"
    cut = re.search(r"max search depth too small|Search not completed|"
                    r"out of memory|reached -DMEMLIM|truncated", out)
    if cut is not None:
        return False, states, "not exhaustive: " + cut.group(0)
    if states < case["least"]:
        return False, states, f"fewer than {case['least']} states: not the same model"
    return True, states, "exhausted, no error"


def check(case, keep=None, minutes=60, gib=4.0):
    folder = keep or tempfile.mkdtemp(prefix="quoin-model-")
    try:
        verifier(case, folder, gib)
        table = "-w20" if case["bad"] else "-w23"
        done = run(["./pan", f"-m{case.get('depth', DEPTH)}", table], folder, minutes)
        passes, states, seen = verdict(case, done.stdout)
    except Broken as broken:
        return None, 0, str(broken)
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    return passes, states, seen


def name_of(case):
    return " ".join([case["model"], *case["knobs"]])


def check_all(cases):
    kept = os.environ.get("QN_MODEL_DIR")
    jobs = int(os.environ.get("QN_MODEL_JOBS", "2"))

    def one(numbered):
        number, case = numbered
        keep = None
        if kept:
            keep = os.path.join(os.path.abspath(kept), str(number))
            os.makedirs(keep, exist_ok=True)
        return case, check(case, keep)

    worst = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        tried = [pool.submit(one, numbered) for numbered in enumerate(cases)]
        for done in concurrent.futures.as_completed(tried):
            case, (passes, states, seen) = done.result()
            word = {True: "ok", False: "FAILED", None: "BROKEN"}[passes]
            print(f"{word:6} {states:>10} states  {name_of(case)}: {seen}", flush=True)
            worst = max(worst, {True: 0, False: 1, None: 2}[passes])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{len(cases)} cases, {used.ru_utime + used.ru_stime:.0f} s of CPU, "
          f"at most {used.ru_maxrss // 1024} MiB in one process")
    return worst


def by_hand(argv):
    knobs = [a[2:] for a in argv if a.startswith("-D")]
    value = {"--minutes": 600.0, "--gib": 16.0}
    for key in value:
        if key in argv:
            value[key] = float(argv[argv.index(key) + 1])
    bad = "--bad" in argv
    case = {"model": argv[0][:-len(".pml")], "knobs": knobs, "bad": bad,
            "least": 0, "how": [] if bad else ["-DCOLLAPSE"]}
    passes, states, seen = check(case, None, value["--minutes"], value["--gib"])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{states} states, {used.ru_utime + used.ru_stime:.0f} s of CPU, "
          f"{used.ru_maxrss // 1024} MiB: {seen}")
    return {True: 0, False: 1, None: 2}[passes]


def main(argv):
    if argv and argv[0].endswith(".pml"):
        return by_hand(argv)
    cases = [c for c in CASES if not argv or argv == ["--list"] or c["model"] in argv]
    if argv == ["--list"]:
        for case in cases:
            print(("defect " if case["bad"] else "good   ") + name_of(case))
        return 0
    unknown = set(argv) - {c["model"] for c in CASES}
    if unknown:
        print(f"check.py: no model {', '.join(sorted(unknown))}; models: "
              f"{', '.join(sorted({c['model'] for c in CASES}))}", file=sys.stderr)
        return 2
    return check_all(cases)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
