"""The measurements of bench_server.py: rows, figures, targets, tables.

A row is one load; its runs are the JSON of `quoin load`. A figure is the
median over the pairs, a ratio the median of the pairs' ratios (quoind /
redis). This module starts nothing.
"""

import math
import statistics

from bench_processes import REPLICAS


# ---- rows ----

KIB, MIB = 1 << 10, 1 << 20


def size_text(size):
    """16 B, 64 KiB, 1 MiB."""
    return (f"{size} B" if size < KIB else f"{size // KIB} KiB" if size < MIB
            else f"{size // MIB} MiB")


def parse_sizes(text):
    """`16,1ki,64ki,16mi` as numbers; ValueError for anything else, or a size
    that no row has."""
    unit = {"": 1, "k": KIB, "ki": KIB, "m": MIB, "mi": MIB}
    sizes = []
    for word in text.split(","):
        digits = word.strip().lower().rstrip("kmi")
        if not digits.isdigit() or word.strip().lower()[len(digits):] not in unit:
            raise ValueError(f"'{word}' is not a size; use 16, 64ki or 1mi")
        sizes.append(int(digits) * unit[word.strip().lower()[len(digits):]])
        if sizes[-1] not in SIZES:
            raise ValueError(f"no row has values of {size_text(sizes[-1])}; "
                             "use " + ", ".join(map(size_text, SIZES)))
    return sizes


SIZES = (16, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 16 * MIB,
         64 * MIB)
DATA_BYTES = 64 * MIB    # of all keys, with values of 4 KiB and more
COUNTED_BYTES = 256 * MIB  # of a run, with values of 16 MiB and more
FLIGHT_BYTES = 64 * MIB  # maximum of unanswered requests


class Row:
    def __init__(self, name, mix, pipeline, connections=50, value_size=16,
                 keys=1000000, stopped=False, targets=()):
        self.name = name
        self.mix = mix
        self.pipeline = pipeline
        self.connections = connections
        self.value_size = value_size
        self.keys = keys
        self.stopped = stopped  # one replica is
        self.targets = targets  # (figure, ">=" or "<=", ratio)
        self.a = []             # quoind's runs, `quoin load`'s JSON
        self.b = []             # redis'
        self.failed = [0, 0]    # preloads
        self.snapshots = 0      # installed by quoind's replicas meanwhile
        self.weights = [[], []]  # of each process, see Server.weigh

    def data(self):
        """Rows with the same data share a preload."""
        return self.value_size, self.keys

    def errors(self):
        """For quoind and for redis: the failures."""
        return [failed + sum(run[name] for run in runs for name in TROUBLE)
                for failed, runs in zip(self.failed, (self.a, self.b))]

    def weigh(self, side, processes):
        """Keeps the maximum of each process."""
        kept = self.weights[side]
        for i, now in enumerate(processes):
            if i == len(kept):
                kept.append(dict(now))
            else:
                kept[i] = {k: max(v, now[k]) for k, v in kept[i].items()}

    def counted(self):
        """Requests of a run; 0: limited by time. A request that takes seconds
        would be unanswered at the end of such a run."""
        return COUNTED_BYTES // self.value_size \
            if self.value_size >= 16 * MIB else 0

    def ratios(self, figure):
        return [a / b if b else float("nan")
                for a, b in zip(series(self.a, figure),
                                series(self.b, figure))]


# Members of a run that count as errors.
TROUBLE = ("errors", "wrong", "unanswered", "misses")


def series(runs, figure):
    """Not a number without an answer."""
    values = [FIGURES[figure](run) for run in runs]
    return [float("nan") if v is None else v for v in values]


def interval(values):
    """The median and its interval of 95 % certainty for any distribution:
    order statistics of the binomial. For few values: minimum and maximum."""
    values = sorted(values)
    n = len(values)
    tail, k = 0.5 ** n, 0  # P(fewer than k + 1 of n lie below the median)
    while tail <= 0.025:
        k += 1
        tail += math.comb(n, k) * 0.5 ** n
    k = max(k - 1, 0)
    return statistics.median(values), values[k], values[n - 1 - k]


FIGURES = {
    "ops": lambda run: run["ops_per_s"],
    "p50": lambda run: run["latency_us"]["p50"],
    "p99": lambda run: run["latency_us"]["p99"],
    "cpu": lambda run: run["cpu_us_per_op"],
}

MIXES = (("GET", "get"), ("SET", "set"), ("80/20", "get:80,set:20"))


# (value size, pipeline) of SET: its rate, and p99, relative to redis.
LEAST_SET = {(KIB, 16): 0.95, (64 * KIB, 16): 0.7, (MIB, 1): 0.6}
MOST_SET_P99 = 3
MOST_SET_CPU = {(64 * KIB, 16): 2.5}


def sized_rows(size, pipeline):
    """Numbers of keys and connections that keep memory bounded."""
    keys = 100000 if size == KIB else min(1000, max(DATA_BYTES // size, 2))
    connections = min(50, max(FLIGHT_BYTES // (size * pipeline), 2))
    rows = []
    for name, mix in MIXES:
        targets = []
        at = size, pipeline
        if name == "SET" and at in LEAST_SET:
            targets += [("ops", ">=", LEAST_SET[at]),
                        ("p99", "<=", MOST_SET_P99)]
        if name == "SET" and at in MOST_SET_CPU:
            targets.append(("cpu", "<=", MOST_SET_CPU[at]))
        rows.append(Row(f"{name} P={pipeline}, {size_text(size)}", mix,
                        pipeline, connections=connections, value_size=size,
                        keys=keys, targets=targets))
    return rows


def all_rows():
    least = {"GET": 1.0, "SET": 0.7, "80/20": 0.9}
    most_cpu = {("GET", 16): 1.0, ("SET", 16): 2.2,
                ("GET", 1): 1.2, ("SET", 1): 4}
    rows = []
    for pipeline in 1, 16, 64:
        for name, mix in MIXES:
            targets = []
            if pipeline > 1:
                targets.append(("ops", ">=", least[name]))
            if (name, pipeline) in most_cpu:
                targets.append(("cpu", "<=", most_cpu[name, pipeline]))
            rows.append(Row(f"{name} P={pipeline}", mix, pipeline,
                            targets=targets))
    rows.append(Row("GET P=1, 1 connection", "get", 1, connections=1))
    rows.append(Row("SET P=1, 1 connection", "set", 1, connections=1,
                    targets=[("p50", "<=", 3)]))
    for name, mix in MIXES:
        rows.append(Row(f"{name} P=1, 1000 connections", mix, 1,
                        connections=1000))
    for size in SIZES[1:]:
        for pipeline in (1, 16) if size in (KIB, 64 * KIB) else \
                (16,) if size < MIB else (1,):
            rows += sized_rows(size, pipeline)
    for name, mix in MIXES:
        rows.append(Row(f"{name} P=16, one replica stopped", mix, 16,
                        stopped=True))
    return rows


# The row within quoind: its SET rate while one replica is stopped.
STOPS_NAME = "SET P=16 at replicas 0 and 1, within quoind"
STOPPED_LEAST = 0.9


# ---- output ----

def targets_text(row):
    texts = []
    for figure, relation, bound in row.targets:
        met = is_met(row, figure, relation, bound)
        texts.append(f"{figure} {relation} {bound:g}"
                     f"{'' if met else ' SHORT'}")
    return ", ".join(texts)


def is_met(row, figure, relation, bound):
    ratio = statistics.median(row.ratios(figure))
    return ratio >= bound if relation == ">=" else ratio <= bound


def print_header():
    print("\nquoind / redis; kop/s, us; CPU in us per request, all processes; "
          "ratios with their least and most; errors: wrong, unanswered, "
          "missing, refused; snapshots that replicas installed; MiB of own "
          "(RssAnon) and shared memory (RssShmem) and used_memory, the most of "
          "any process\n")
    print("| load | kop/s | ratio | p50 | p99 | p50 ratio | CPU | CPU ratio "
          "| errors | snapshots | own + shared, used | target |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|---|")


def both(row, figure, form, scale=1):
    a = statistics.median(series(row.a, figure)) / scale
    b = statistics.median(series(row.b, figure)) / scale
    return f"{a:{form}} / {b:{form}}"


def weight_text(processes):
    if not processes:
        return "-"
    own, shared, used = (max(p[k] for p in processes) / MIB
                         for k in ("anon", "shmem", "used"))
    return f"{own:.0f} + {shared:.0f}, {used:.0f}"


def ratio_text(ratios):
    return (f"{statistics.median(ratios):.2f} "
            f"({min(ratios):.2f}-{max(ratios):.2f})")


def print_row(row):
    print(f"| {row.name} | {both(row, 'ops', '.3g' if row.value_size >= 256 * KIB else '.1f', 1000)} "
          f"| {ratio_text(row.ratios('ops'))} "
          f"| {both(row, 'p50', '.0f')} | {both(row, 'p99', '.0f')} "
          f"| {ratio_text(row.ratios('p50'))} "
          f"| {both(row, 'cpu', '.2f')} "
          f"| {ratio_text(row.ratios('cpu'))} "
          f"| {' / '.join(map(str, row.errors()))} | {row.snapshots} "
          f"| {' / '.join(map(weight_text, row.weights))} "
          f"| {targets_text(row)} |", flush=True)


def stop_ratios(stops):
    """Each stopped interval relative to the mean of the running ones around
    it."""
    running = [run["ops_per_s"] for run in stops["running"]]
    return [2 * run["ops_per_s"] / (before + after) for run, before, after
            in zip(stops["stopped"], running, running[1:])]


def stops_met(stops):
    return statistics.median(stop_ratios(stops)) >= STOPPED_LEAST


def print_stops(stops, options):
    ratio, low, high = interval(stop_ratios(stops))
    rates = [statistics.median(run["ops_per_s"] / 1000 for run in stops[side])
             for side in ("running", "stopped")]
    took = stops["catch_up_s"]
    print(f"\n{len(took)} stops of replica {REPLICAS - 1} for "
          f"{options.stop_seconds:g} s, each beside the running intervals "
          f"around it; median with its 95 % interval\n\n"
          "| load | kop/s running | stopped | stopped / running "
          "| p99 us running / stopped | caught up after, s | target |\n"
          "|---|---|---|---|---|---|---|")
    p99 = [statistics.median(run["latency_us"]["p99"] for run in stops[side])
           for side in ("running", "stopped")]
    met = "" if stops_met(stops) else " SHORT"
    print(f"| {stops['row']} | {rates[0]:.1f} | {rates[1]:.1f} "
          f"| {ratio:.2f} ({low:.2f}-{high:.2f}) "
          f"| {p99[0]:.0f} / {p99[1]:.0f} "
          f"| {statistics.median(took):.2f} ({min(took):.2f}-{max(took):.2f}) "
          f"| >= {STOPPED_LEAST:g}{met} |", flush=True)


def missed(rows, facts, stops):
    """The missed targets, a text each."""
    short = [f"{row.name}: {f} {rel} {bound:g}" for row in rows
             for f, rel, bound in row.targets if not is_met(row, f, rel, bound)]
    short += [fact[0] for fact in facts if not fact[4]]
    if stops and not stops_met(stops):
        short.append(f"{stops['row']}: stopped / running >= "
                     f"{STOPPED_LEAST:g}")
    return short


def print_facts(facts):
    print("\n| | quoind | redis | target |\n|---|---|---|---|")
    for what, a, b, target, met in facts:
        print(f"| {what} | {a:.3g} | {b:.3g} "
              f"| {target}{'' if met else ' SHORT'} |")
