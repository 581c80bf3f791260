#!/usr/bin/python3
"""What do locks, delegation and concurrent objects cost on this machine?

    bench_sync.py                       all tables of docs/sync.md
    bench_sync.py --only 'two|server'   some of them: two, combiner, server, lock

Runs `quoin bench lock|delegate|queue|stack` and judges each figure:

    two       two threads, each with a core: ratios to a counter by
              fetch-and-add in the same rounds, and p99.9 of `auto`
    combiner  4, 8 and 16 threads: the share that combiners keep of their rate
              with two threads, and the most operations of a thread over the
              least
    server    the same of servers, and their longest operation
    lock      locks that hand over in order: time per operation

Needs two cores and nothing else running. A figure is a median over rounds; the
longest operation is that of all rounds whose operations are timed.
"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../.."))

from tests.process.lib import script  # noqa: E402

MANY = (4, 8, 16)
YARDSTICK = 0.2  # s of a round, at most


class Figure:
    """One number of a subject. `of` takes a row of `quoin bench`; it is wanted
    to be at least, or at most, `limit`."""

    def __init__(self, what, of, relation, limit):
        self.what, self.of = what, of
        self.relation, self.limit = relation, limit

    def met(self, row):
        got = self.of(row)
        return got >= self.limit if self.relation == ">=" else \
            got <= self.limit


def ratio(least):
    return Figure("of fetch-add", lambda row: row["ratio"]["median"], ">=",
                  least)


def kept(least):
    return Figure("of two threads",
                  lambda row: row["of_first_threads"]["median"], ">=", least)


FAIR = Figure("max/min", lambda row: row["max_over_min"]["median"], "<=", 3)
P999 = Figure("p99.9, us", lambda row: row["ns"]["p999"] / 1e3, "<=", 10)
LONGEST = Figure("longest, ms", lambda row: row["ns"]["max"] / 1e6, "<=", 50)
EACH = Figure("us per operation",
              lambda row: 1e6 / row["per_second"]["median"], "<=", 10)

# Name of the table, command, numbers of threads, and figures by subject: of all
# numbers but the first one where there are several.
TABLES = [
    ("two", "delegate", (2,), {"counter/auto": [ratio(0.42), P999],
                               "counter/cc_synch": [ratio(0.26)]}),
    ("two", "lock", (2,), {"lock/mcs": [ratio(0.12)],
                           "lock/clh": [ratio(0.12)]}),
    ("two", "queue", (2,), {"queue/lcrq": [ratio(0.53)]}),
    ("two", "stack", (2,), {"stack/treiber": [ratio(0.45)]}),
    ("combiner", "delegate", (2, *MANY),
     {name: [kept(0.8), FAIR] for name in
      ("delegate/cc_synch", "delegate/h_synch", "delegate/hyb_comb",
       "delegate/auto")}),
    ("server", "delegate", (2, *MANY),
     {name: [kept(0.6), LONGEST] for name in
      ("delegate/shm_server", "delegate/mp_server")}),
    ("lock", "lock", MANY, {name: [EACH] for name in
                            ("lock/mcs", "lock/clh", "lock/hyblock")}),
]


def is_timed(figures):
    """Does one of them need the time of each operation?"""
    return any(f in (P999, LONGEST) for all_of in figures.values()
               for f in all_of)


def tell(o, table, rounds, seconds):
    """What runs now, and for how long, if a round takes what it is given."""
    name, command, threads, figures = table
    subject = len(figures) * seconds * len(threads)
    plain = min(seconds, YARDSTICK) * len(threads)
    timed = rounds // 4 + 1 if is_timed(figures) else 0
    takes = rounds * (subject + plain) + timed * (
        subject + seconds * len(threads))
    print(f"{name}: quoin bench {command}, {rounds} rounds of "
          f"{len(figures)} subjects, {takes:.0f} s"
          if not o.quick else f"{name}: quoin bench {command}",
          file=sys.stderr, flush=True)


def bench(o, table):
    """The report of `quoin bench` for a table."""
    name, command, threads, figures = table
    rounds, seconds = (o.rounds, 0.02) if name == "two" else (3, o.seconds)
    tell(o, table, rounds, seconds)
    more = ["--quick"] if o.quick else [
        "--rounds", str(rounds), "--round-ms", str(seconds * 1000)]
    if not is_timed(figures):
        more.append("--untimed")
    done = subprocess.run(
        [o.quoin, "bench", command, "--threads", ",".join(map(str, threads)),
         "--only", ",".join(figures), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return json.loads(done.stdout)


def judged(table, report):
    """Each (subject, threads, figure, row), in the order of the table."""
    runs = report["runs"]
    for run in runs[1:] if runs[0]["threads"] not in MANY and runs[1:] else runs:
        for row in run["subjects"]:
            for figure in table[3].get(row["subject"], []):
                yield row["subject"], run["threads"], figure, row


def show(table, report):
    met = True
    for subject, threads, figure, row in judged(table, report):
        good = figure.met(row)
        met = met and good
        print(f"| {table[0]} | {subject} | {threads} | {figure.what} "
              f"| {figure.of(row):.3g} | {figure.relation} {figure.limit:g} "
              f"| {'met' if good else 'SHORT'} |", flush=True)
    return met


def run(o):
    print("| table | subject | threads | figure | | wanted | |\n"
          "|---|---|---|---|---|---|---|")
    found = []
    for table in TABLES:
        if re.search(o.only, table[0]):
            report = bench(o, table)
            found.append({"report": report, "met": show(table, report)})
    return found


def parse():
    p = script.parser(__doc__)
    p.add_argument("--rounds", type=int, default=11,
                   help="of two threads (%(default)s)")
    p.add_argument("--seconds", type=float, default=2,
                   help="of a round with more (%(default)s)")
    p.add_argument("--only", default="", metavar="REGEX", help="tables")
    p.add_argument("--json", metavar="FILE", help="all reports")
    p.add_argument("--check", action="store_true",
                   help="exit status 1 if a figure is short")
    p.add_argument("--quick", action="store_true",
                   help="two short rounds, to test that the script works")
    o = script.options(p)
    if o.rounds < 1 or o.seconds <= 0:
        p.error("--rounds and --seconds must be more than 0")
    if not any(re.search(o.only, table[0]) for table in TABLES):
        p.error("--only: no table has such a name")
    return o


def main():
    o = parse()
    found = script.end(lambda: run(o), o)
    return 1 if o.check and not all(table["met"] for table in found) else 0


if __name__ == "__main__":
    sys.exit(main())
