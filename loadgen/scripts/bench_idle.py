#!/usr/bin/env python3
"""What idle members of a group use: processor time and wake-ups, over some seconds.

Three processes of STORE, the program of examples/store.c, form a group and are
left alone; what the kernel has counted for each is printed, and what they
used together as a share of one core. It is no test: how long a machine is left
alone is not the program's to say.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

MEMBERS = 3
SETTLE = 3  # seconds: what they have met by is closed after 2


def ran_ns(pid):
    """Processor time of a process, ns, by the scheduler's own count."""
    with open("/proc/%d/schedstat" % pid) as f:
        return int(f.read().split()[0])


def wakes(pid):
    with open("/proc/%d/status" % pid) as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt"))


def peers_watched(pid):
    """How many processes of peers it has in its descriptor: those that it has met."""
    folder = "/proc/%d/fd" % pid
    return sum(os.readlink(os.path.join(folder, fd)) == "anon_inode:[pidfd]"
               for fd in os.listdir(folder))


def measure(store, seconds):
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "group")
        members = [subprocess.Popen([store, name, str(MEMBERS)], stdin=subprocess.PIPE,
                                    stdout=subprocess.DEVNULL) for _ in range(MEMBERS)]
        try:
            while any(peers_watched(m.pid) < MEMBERS - 1 for m in members):
                time.sleep(0.01)
            time.sleep(SETTLE)
            before = [(ran_ns(m.pid), wakes(m.pid)) for m in members]
            begin = time.monotonic()
            time.sleep(seconds)
            passed = time.monotonic() - begin
            after = [(ran_ns(m.pid), wakes(m.pid)) for m in members]
        finally:
            for m in members:
                m.kill()
                m.wait()
    used = [(a[0] - b[0], a[1] - b[1]) for a, b in zip(after, before)]
    for i, (ns, woken) in enumerate(used):
        print("member %d: %.3f ms, woken %d times in %.1f s" % (i, ns / 1e6, woken, passed))
    print("together: %.4f %% of a core" % (sum(ns for ns, _ in used) / passed / 1e7))


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("store", metavar="STORE")
    p.add_argument("seconds", metavar="SECONDS", type=float, nargs="?", default=20.0)
    a = p.parse_args()
    if not os.access(a.store, os.X_OK):
        p.error("%s is no program; build the target store" % a.store)
    if not a.seconds > 0:
        p.error("SECONDS must be above 0")
    measure(a.store, a.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
