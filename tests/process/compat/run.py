#!/usr/bin/python3
"""Is the server compatible with Redis? Sends the same bytes to RESP servers
and compares the replies.

    run.py --server PATH [--suite NAME] ...

starts the server on a free port, runs the suites, ends the server, and prints
one line per suite. The exit status is 0 if all was as expected, 1 if not, 2 if
it could not run. README.md says what the suites are.
"""

import argparse
import shutil
import sys
import time
import traceback

import clients
import differential
import limits
import pipelines
import protocol
import shapes
import transcript
from server import Server

SUITES = {
    "transcripts": transcript.run,
    "shapes": shapes.run,
    "protocol": protocol.run,
    "pipelines": pipelines.run,
    "limits": limits.run,
    "differential": differential.run,
    "clients": clients.run,
}


def options():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--server", required=True, help="redis-server or quoind")
    p.add_argument("--suite", action="append", choices=SUITES,
                   help="may be repeated; default: all")
    p.add_argument("--replicas", type=int, default=3, help="of a quoind")
    p.add_argument("--reference", default=shutil.which("redis-server"),
                   help="redis-server to compare with (differential)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--count", type=int, default=3000,
                   help="random commands of a differential run")
    p.add_argument("--only", help="transcripts whose name contains this")
    p.add_argument("--record", action="store_true",
                   help="write the transcripts' replies, from a redis-server")
    p.add_argument("--show", type=int, default=10, help="differences shown")
    return p.parse_args()


def run_suite(name, server, opts):
    """@return True if all was as expected."""
    start = time.monotonic()
    try:
        total, wrong = SUITES[name](server, opts)
    except Exception:  # for any error: end the server and run the rest
        total, wrong = 0, [traceback.format_exc()]
    took = time.monotonic() - start
    for text in wrong[:opts.show]:
        print(text)
    print(f"{name}: {total} checks, {len(wrong)} wrong, {took:.1f} s "
          f"({server.name})", flush=True)
    return not wrong


def main():
    opts = options()
    if shutil.which(opts.server) is None:
        print(f"{opts.server} is not a program: build it, or install "
              "redis-server", file=sys.stderr)
        return 2
    good = True
    with Server(opts.server, opts.replicas) as server:
        if opts.record:
            if not server.is_redis:
                print("--record needs a redis-server", file=sys.stderr)
                return 2
            transcript.record(server, opts)
            return 0
        for name in opts.suite or SUITES:
            good = run_suite(name, server, opts) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
