#!/usr/bin/env python3
"""quoin load compared with redis-benchmark, against one redis-server: which
generator sends more, and at which cost per request?

Usage: bench_load.py [--quick] [--quoin PATH] [--pairs N] [--json FILE]

Both send the same number of the same requests over as many connections, closed
loop, in turn. The server runs on one core and the generator on another, if
there are two. Rates: requests over the time that each program reports. CPU:
total CPU time of its process, including its start, over all requests. A ratio
above 1 means that quoin sends more, or needs less.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONNECTIONS = 50
# pipeline, threads, requests: enough for a second or two
CASES = ((1, 1, 150_000), (1, 2, 250_000), (16, 1, 1_500_000),
         (64, 1, 2_500_000))


class Server:
    """A redis-server of our own, on a Unix socket and a TCP port."""

    def __init__(self, cores):
        self.dir = tempfile.mkdtemp(prefix="qn-bench-load-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--save", "", "--appendonly", "no", "--dir", self.dir],
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.01)
        raise SystemExit("bench_load: redis-server does not start")

    def flush(self):
        """Each run starts with an empty store. The key names of the two
        differ, so the second one would otherwise find a larger table."""
        with socket.create_connection(("127.0.0.1", self.port)) as s:
            s.sendall(b"FLUSHALL\r\n")
            if s.recv(16) != b"+OK\r\n":
                raise SystemExit("bench_load: FLUSHALL refused")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir)


def run(command, cores):
    """Its stdout, and the CPU seconds that it used."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores))
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"bench_load: {command[0]} failed")
    return out, usage.ru_utime + usage.ru_stime


def redis_benchmark(port, op, pipeline, threads, requests, cores):
    command = ["redis-benchmark", "-p", str(port), "-c", str(CONNECTIONS),
               "-P", str(pipeline), "-n", str(requests), "-t", op, "-d", "16",
               "-r", "1000000", "--csv"]
    if threads > 1:
        command += ["--threads", str(threads)]
    out, cpu = run(command, cores)
    rate = float(out.splitlines()[1].split(",")[1].strip('"'))
    return rate, cpu / requests * 1e6


def quoin_load(quoin, port, op, pipeline, threads, requests, cores):
    out, cpu = run([quoin, "load", "--to", f"127.0.0.1:{port}",
                    "--connections", str(CONNECTIONS), "--pipeline",
                    str(pipeline), "--threads", str(threads), "--requests",
                    str(requests), "--warmup", "0", "--mix", op, "--json"],
                   cores)
    got = json.loads(out.splitlines()[-1])
    if got["ops"] != requests:
        raise SystemExit("bench_load: quoin load lost requests")
    return got["ops_per_s"], cpu / requests * 1e6


def measure(options, server_cores, cores, case, op):
    pipeline, threads, requests = case
    if options.quick:
        requests //= 100
    theirs, ours = [], []
    server = Server(server_cores)
    try:
        for _ in range(options.pairs):
            server.flush()
            theirs.append(redis_benchmark(server.port, op, pipeline, threads,
                                          requests, cores))
            server.flush()
            ours.append(quoin_load(options.quoin, server.port, op, pipeline,
                                   threads, requests, cores))
    finally:
        server.stop()
    middle = [statistics.median(x[i] for x in side)
              for side in (theirs, ours) for i in (0, 1)]
    return {"op": op, "pipeline": pipeline, "threads": threads,
            "connections": CONNECTIONS, "requests": requests,
            "redis_benchmark": {"ops_per_s": middle[0], "cpu_us": middle[1]},
            "quoin_load": {"ops_per_s": middle[2], "cpu_us": middle[3]},
            "rate_ratio": statistics.median(
                o[0] / t[0] for t, o in zip(theirs, ours)),
            "cpu_ratio": statistics.median(
                t[1] / o[1] for t, o in zip(theirs, ours)),
            "pairs": [[*t, *o] for t, o in zip(theirs, ours)]}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="only check that it runs")
    parser.add_argument("--quoin", default=os.path.join(
        HERE, "../../build/release/loadgen/quoin"))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--json", metavar="FILE", help="all pairs")
    options = parser.parse_args()
    options.pairs = 1 if options.quick else max(options.pairs, 1)
    usable = sorted(os.sched_getaffinity(0))
    server_cores, cores = {usable[0]}, set(usable[1:]) or {usable[0]}
    print(f"{CONNECTIONS} connections, keys and values of 16 bytes; server on "
          f"core {usable[0]}, generator on {sorted(cores)}; medians of "
          f"{options.pairs} pairs")
    print("op   pipeline threads  redis-benchmark      quoin load           "
          "ratios")
    print("                         ops/s  CPU us         ops/s  CPU us     "
          "rate   CPU")
    rows = []
    for case in CASES:
        for op in "get", "set":
            r = measure(options, server_cores, cores, case, op)
            rows.append(r)
            a, b = r["redis_benchmark"], r["quoin_load"]
            print(f"{op:4} {r['pipeline']:8} {r['threads']:7} "
                  f"{a['ops_per_s']:9.0f} {a['cpu_us']:7.2f}    "
                  f"{b['ops_per_s']:10.0f} {b['cpu_us']:7.2f}    "
                  f"{r['rate_ratio']:5.2f} {r['cpu_ratio']:5.2f}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
