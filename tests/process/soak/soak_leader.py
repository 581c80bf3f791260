"""Full load without faults: does the leader change, or is a peer suspected?

    soak_leader.py --seconds 600                    nothing else runs
    soak_leader.py --seconds 600 --beside loops     a busy loop per core beside it
    soak_leader.py --seconds 600 --beside quota     in a container that gets the time
                                               of one CPU (a control group; root)
    soak_leader.py --seconds 600 --beside cpu       confined to one CPU

A quoind with three replicas, and `quoin load` without pause on the ports of
all of them. At the end INFO shows the fail-overs, and the flight recorders the
suspicions, peers that fell behind and snapshots. Status 1 after a fail-over or
a wrong reply.

A run may be split into pieces: --sum FILE adds each to the counts in the file.
"""
import collections
import json
import os
import subprocess
import sys

from tests.process.lib import script
from tests.process.lib.checks import add_up
from tests.process.lib.quoind import Quoind, end_with_parent
from tests.process.lib.info_view import look

BESIDE = ("nothing", "loops", "quota", "cpu")
TOLD = ("suspect", "claim", "vote", "behind", "need-snapshot", "pause")


class Group:
    """A control group with the time of one CPU, of either version."""

    def __init__(self):
        name = "quoin-soak-%d" % os.getpid()
        if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
            self.path = "/sys/fs/cgroup/" + name
            limits = {"cpu.max": "100000 100000"}
        else:
            self.path = "/sys/fs/cgroup/cpu/" + name
            limits = {"cpu.cfs_period_us": "100000",
                      "cpu.cfs_quota_us": "100000"}
        os.mkdir(self.path)
        for file, text in limits.items():
            with open("%s/%s" % (self.path, file), "w") as f:
                f.write(text)

    def command(self, command):
        return ["sh", "-c", 'echo $$ >"$0"; exec "$@"',
                self.path + "/cgroup.procs", *command]

    def throttled(self):
        """How often its time quota was used up."""
        with open(self.path + "/cpu.stat") as f:
            return int(dict(line.split() for line in f)["nr_throttled"])

    def remove(self):
        os.rmdir(self.path)


def run_load(q, o):
    """@return the seconds; the summary."""
    done = subprocess.run(
        [o.quoin, "load", *q.to(), "--json", "--keys", "100k", "--preload",
         "--mix", o.mix, "--connections", str(o.connections), "--pipeline",
         str(o.pipeline), "--warmup", "0.5", "--seconds", str(o.seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError("quoin load: status %d: %s" % (done.returncode,
                                                         done.stderr))
    *seconds, summary = map(json.loads, done.stdout.splitlines())
    return seconds, summary


def events(q, o):
    """The number of recorded events by kind."""
    done = subprocess.run([o.quoin, "events", "--json", *q.to([0])],
                          check=True, capture_output=True, text=True)
    return collections.Counter(json.loads(line)["event"]
                               for line in done.stdout.splitlines())


def measure(q, o):
    seconds, summary = run_load(q, o)
    view = look(q, range(q.replicas))
    told = events(q, o)
    rates = sorted(s["ops_per_s"] for s in seconds)
    return {
        "pieces": 1, "seconds": int(summary["seconds"]),
        "operations": summary["ops"], "failovers": view.failovers,
        **{name: told[name] for name in TOLD},
        "least ops/s": int(rates[0]), "rates": [int(summary["ops_per_s"])],
        "longest ms without an answer": max(
            s["longest_ms"] for s in summary["unavailability"]),
    }


def run(o):
    group = Group() if o.beside == "quota" else None
    loops = []
    try:
        q = Quoind(o.quoind, args=o.args)
        if group:
            q.cmd = group.command(q.cmd)
        if o.beside == "cpu":
            first = min(os.sched_getaffinity(0))
            q.cmd = ["taskset", "-c", str(first), *q.cmd]
        if o.beside == "loops":
            loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"],
                                      preexec_fn=end_with_parent)
                     for _ in os.sched_getaffinity(0)]
        with q:
            found = measure(q, o)
        if group:
            found["throttled"] = group.throttled()
        return found
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        if group:
            group.remove()


def parse():
    p = script.parser(__doc__)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--beside", choices=BESIDE, default="nothing")
    p.add_argument("--mix", default="get,set")
    p.add_argument("--connections", type=int, default=48)
    p.add_argument("--pipeline", type=int, default=16)
    p.add_argument("--sum", metavar="FILE",
                   help="add the counts to those in this file")
    p.add_argument("args", nargs="*", metavar="OPTION",
                   help="of quoind, behind --")
    o = script.options(p)
    return o


def main():
    o = parse()
    found = run(o)
    failed = found["failovers"] > 0
    if o.sum:
        found = add_up(o.sum, found)
    print("beside %s: %s" % (o.beside, ", ".join(
        "%s %s" % x for x in found.items())))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
