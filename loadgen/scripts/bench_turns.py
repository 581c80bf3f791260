#!/usr/bin/python3
"""The longest loop iterations of quoind while its table grows to 10^7 keys, is
overwritten, read and flushed: the time that clients wait.

Each replica measures its own iterations (kvs/frontend/loop_stats.h): the work from
wake-up to the next wait, without the time that the scheduler gave the core to
other processes. The counts are reset before each phase and read with INFO
after it.

All started programs are ended, also on Ctrl-C.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

from bench_processes import REPLICAS, quoind

FIGURES = ("p99", "p999", "p9999", "max")
PARTS = ("sockets", "apply", "answers")


def patiently(server, line, wanted):
    """The reply to `line`, repeated until it has `wanted`: on a busy machine a
    replica may exceed the 100 ms for its answer to another."""
    for _ in range(100):
        reply = server.ask(line)
        if wanted in reply:
            return reply
        time.sleep(0.1)
    sys.exit(f"{line}: {reply}")


def turns_of(server):
    """[{figure: us}] by replica."""
    info = patiently(server, "INFO quoin", "replicas_missing:\r")
    found = []
    for i in range(REPLICAS):
        line = re.search(rf"^turns{i}:(.*)$", info, re.M)
        fields = dict(f.split("=") for f in line[1].strip().split(","))
        one = {f: int(fields[f"turn_usec_{f}"]) for f in FIGURES}
        one["growth_max"] = int(fields["turn_growth_usec_max"])
        one["wall_max"] = int(fields["turn_wall_usec_max"])
        one["parts"] = {p: int(fields[f"turn_max_{p}_usec"]) for p in PARTS}
        found.append(one)
    return found


def load(server, options, *args):
    """One run of `quoin load`; @return its JSON."""
    command = [options.quoin, "load", "--json", "--keys", str(options.keys),
               "--key-size", "8", "--value-size", "16", "--threads", "1",
               "--connections", str(options.connections), "--pipeline",
               str(options.pipeline), "--to", f"127.0.0.1:{server.port}"]
    done = subprocess.run(command + list(args), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout.splitlines()[-1])  # the summary


def fill(server, options):
    load(server, options, "--preload", "--requests", "1", "--mix", "ping",
         "--warmup", "0")
    return options.keys


def run(mix):
    def phase(server, options):
        got = load(server, options, "--mix", mix, "--warmup", "0",
                   "--seconds", str(options.seconds))
        return int(got["ops_per_s"] * options.seconds)
    return phase


def flush(server, options):
    """FLUSHALL, and the time until its memory is given back."""
    del options
    server.ask("FLUSHALL")
    before = None
    while True:  # until a second gives nothing back
        time.sleep(1)
        now = sum(resident(pid) for pid in server.pids())
        if before is not None and now >= before:
            return 1
        before = now


def resident(pid):
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1])


PHASES = (("fill", fill), ("overwrite", run("set")), ("read", run("get")),
          ("mixed", run("get:80,set:20")), ("flush", flush))


def measure(server, options):
    rows = []
    for name, phase in PHASES:
        patiently(server, "CONFIG RESETSTAT", "+OK")
        began = time.monotonic()
        operations = phase(server, options)
        took = time.monotonic() - began
        rows.append({"phase": name, "operations": operations,
                     "seconds": round(took, 2), "replicas": turns_of(server)})
        print(f"{name}: {took:.1f} s", file=sys.stderr, flush=True)
    return rows


def show(rows, options):
    print(f"{options.keys} keys, {options.connections} connections, "
          f"pipeline {options.pipeline}; work of one turn, us")
    print(f"{'phase':<10} replica {'p99':>6} {'p99.9':>6} {'p99.99':>6} "
          f"{'max':>6} {'sockets/apply/answers':>22} {'growth':>6} "
          f"{'wall':>7}")
    for row in rows:
        for i, one in enumerate(row["replicas"]):
            parts = "/".join(str(one["parts"][p]) for p in PARTS)
            print(f"{row['phase']:<10} {i:>7} {one['p99']:>6} "
                  f"{one['p999']:>6} {one['p9999']:>6} {one['max']:>6} "
                  f"{parts:>22} {one['growth_max']:>6} {one['wall_max']:>7}")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--quoind", default="build/release/kvs/quoind")
    p.add_argument("--quoin", default="build/release/loadgen/quoin")
    p.add_argument("--keys", type=int, default=10 ** 7)
    p.add_argument("--connections", type=int, default=50)
    p.add_argument("--pipeline", type=int, default=16)
    p.add_argument("--seconds", type=float, default=5,
                   help="of each phase with a load")
    p.add_argument("--most", type=int, metavar="US",
                   help="status 1 if an iteration did more work than that")
    p.add_argument("--json", action="store_true")
    p.add_argument("--quick", action="store_true",
                   help="few keys, short: only checks that it runs")
    options = p.parse_args()
    if options.quick:
        options.keys, options.seconds = 20000, 0.2
    server = quoind(os.path.abspath(options.quoind))
    try:
        server.start()
        rows = measure(server, options)
    finally:
        server.stop()
    if options.json:
        print(json.dumps({"keys": options.keys,
                          "connections": options.connections,
                          "pipeline": options.pipeline, "phases": rows},
                         indent=1))
    else:
        show(rows, options)
    longest = max(one["max"] for row in rows for one in row["replicas"])
    sys.exit(options.most is not None and longest > options.most)


if __name__ == "__main__":
    main()
