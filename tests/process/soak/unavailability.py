"""Why was no operation answered? The nemesis, with a sampler that explains for
each unavailability window what the replicas did meanwhile.

    unavailability.py --kills 20 --stops 5           options of nemesis.py
    unavailability.py --longer 3000 ...              windows from 3 s on (default)
    unavailability.py --keep FILE ...                all samples, one line each

Run it beside the load that causes the windows: builds, lints, busy loops.

Every 50 ms a separate process, with priority over all others if it is allowed
to (SCHED_FIFO), records for each replica and for the load: its state, the
kernel function in which it sleeps, how long it ran and how long it was ready
without a core (/proc/PID/schedstat), page faults that read a disk; for the
machine: time stolen by the host, pressure; and the delay of its own wake-up.
While a replica is ready and gets no core for 0.25 s it also reads the run
queues of the kernel (debugfs, as root): which group of processes (a session, a
cgroup) has run on that core, and how far its virtual time moved for that. So a
window is of one of these kinds:

  machine   the sampler woke late, too: no process ran on this machine
  cores     the living replicas were ready and got no core
  faults    the replicas were stopped, or absent
  work      the living replicas ran
  asleep    the living replicas slept: they wait for each other, or for a timer
            that is too long; see the events that are kept (`quoin events`)
"""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from tests.process.soak import nemesis

EVERY_S = 0.05
STUCK_S = 0.25
QUEUES = "/sys/kernel/debug/sched/debug"
QUEUE = re.compile(r"^cfs_rq\[(\d+)\]:(/\S+)$")
FIELD = re.compile(r"^  \.se->(vruntime|sum_exec_runtime) +: (\S+)$")


# ---- the sampler ----

def text_of(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:  # it has ended
        return ""


def children(pid):
    return [int(p) for p in
            text_of("/proc/%d/task/%d/children" % (pid, pid)).split()]


def watched(pid):
    """The servers of the nemesis, their replicas and its load."""
    found = []
    for child in children(pid):
        name = text_of("/proc/%d/comm" % child).strip()
        if name.startswith("quoin"):
            found += [child, *watched(child)]
    return found


def process(pid):
    """[name, state, ran ns, waited ns, major faults, sleeps in], or None."""
    stat = text_of("/proc/%d/stat" % pid)
    times = text_of("/proc/%d/schedstat" % pid).split()
    if not stat or not times:
        return None
    name = stat[stat.index("(") + 1:stat.rindex(")")]
    rest = stat.rpartition(")")[2].split()
    place = text_of("/proc/%d/wchan" % pid) if rest[0] in "SD" else ""
    return [name, rest[0], int(times[0]), int(times[1]), int(rest[9]), place]


def machine():
    """{name: ns so far}: stolen and idle, of all cores; pressure."""
    ticks = text_of("/proc/stat").split("\n", 1)[0].split()
    tick = 1000000000 // os.sysconf("SC_CLK_TCK")
    found = {"stolen": int(ticks[8]) * tick, "idle": int(ticks[4]) * tick}
    for name in ("cpu", "memory", "io"):
        some = text_of("/proc/pressure/" + name).partition("total=")[2]
        if some:
            found["pressure " + name] = int(some.split()[0]) * 1000
    return found


def queues(text):
    """{"core group": {what: ms}} of the groups with a part of a core: how long
    they have run there, and their virtual time."""
    found, at = {}, None
    for line in text.splitlines():
        queue, field = QUEUE.match(line), FIELD.match(line)
        if queue:
            at = " ".join(queue.groups())
        elif field and at:
            found.setdefault(at, {})[field[1]] = float(field[2])
    return found


class Stuck:
    """The time since which each replica is ready without running."""

    def __init__(self):
        self.since = {}

    def any(self, now, processes):
        ready = {(pid, p[2]) for pid, p in processes.items()
                 if p is not None and p[1] == "R"}
        self.since = {key: self.since.get(key, now) for key in ready}
        return any(now - began >= STUCK_S for began in self.since.values())


def sample(parent, out):
    """Runs until the parent ends it. Each line: time, seconds too late,
    machine, {pid: process}, queues (or nothing)."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except OSError:
        print("the sampler has no priority over other processes; gaps look "
              "like `machine`", flush=True)
    due = time.monotonic()
    stuck = Stuck()
    while os.getppid() == parent:
        now = time.monotonic()
        found = {pid: process(pid) for pid in watched(parent)}
        inside = queues(text_of(QUEUES)) if stuck.any(now, found) else {}
        out.write(json.dumps([now, now - due, machine(), found, inside]) + "\n")
        out.flush()
        due = max(due, now) + EVERY_S
        time.sleep(max(0.0, due - time.monotonic()))


class Sampler:
    def __init__(self, path):
        self.out = open(path, "w+") if path else tempfile.TemporaryFile("w+")
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sample(parent, self.out)
            os._exit(0)

    def between(self, begin, end):
        """The samples of that time."""
        with open("/proc/self/fd/%d" % self.out.fileno()) as f:
            lines = [line for line in f if line.endswith("\n")]
        found = [json.loads(line) for line in lines]
        return [x for x in found if begin <= x[0] <= end]

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.out.close()


# ---- kinds of windows ----

def process_sums(samples):
    """{pid: its activity between the first and the last of its samples}, ms.
    """
    lives = collections.defaultdict(list)
    for at, _, _, processes, _ in samples:
        for pid, p in processes.items():
            if p is not None:
                lives[pid].append((at, p))
    found = {}
    for pid, seen in lives.items():
        (began, first), (ended, last) = seen[0], seen[-1]
        states = collections.Counter(p[1] for _, p in seen)
        places = collections.Counter(p[5] for _, p in seen if p[5])
        found[pid] = {
            "name": first[0], "lived": (ended - began) * 1000,
            "ran": (last[2] - first[2]) / 1e6,
            "waited": (last[3] - first[3]) / 1e6,
            "faults": last[4] - first[4], "states": states,
            "stopped": states["T"] / len(seen),
            "place": places.most_common(1)[0][0] if places else ""}
    return found


def machine_sums(samples):
    """Activity of the machine between first and last, ms; `late`: the sampler.
    """
    first, last = samples[0], samples[-1]
    found = {name: (value - first[2].get(name, value)) / 1e6
             for name, value in last[2].items()}
    found["late"] = sum(x[1] for x in samples) * 1000
    found["latest"] = max(x[1] for x in samples) * 1000
    found["ms"] = (last[0] - first[0]) * 1000
    return found


def queue_lines(samples):
    """The users of the cores while a replica was ready without one."""
    seen = [x for x in samples if x[4]]
    if len(seen) < 2:
        return []
    first, last = seen[0], seen[-1]
    lines = ["queues, for %.0f ms:" % ((last[0] - first[0]) * 1000)]
    for name, end in sorted(last[4].items()):
        begin = first[4].get(name, end)
        ran, virtual = (end[w] - begin[w] for w in
                        ("sum_exec_runtime", "vruntime"))
        if ran > 1:
            lines.append("  core and group %s: ran %.0f ms, its virtual time "
                         "moved by %.1f ms" % (name, ran, virtual))
    return lines


def kind_of(whole, processes):
    """The kind of the window: the main activity of the replicas during it."""
    if whole["late"] > whole["ms"] / 2:
        return "machine"
    replicas = [p for p in processes.values() if p["name"].startswith("quoind-")]
    going = [p for p in replicas if p["stopped"] < 0.5 and p["states"]["Z"] == 0 and
             p["lived"] > whole["ms"] / 2]
    if len(going) < 2:
        return "faults"
    lived = sum(p["lived"] for p in going)
    waited = sum(p["waited"] for p in going)
    ran = sum(p["ran"] for p in going)
    # A replica that waits for a core makes the others in the chain sleep: a
    # third of the time is enough.
    if waited > lived / 3:
        return "cores"
    return "work" if ran > lived / 3 else "asleep"


def told(samples):
    """Kind and lines of an unavailability window."""
    whole, processes = machine_sums(samples), process_sums(samples)
    lines = ["machine: " + ", ".join(
        "%s %.0f ms" % x for x in whole.items())]
    for pid, p in sorted(processes.items(), key=lambda x: x[1]["name"]):
        lines.append("%s %s: lived %.0f ms, ran %.0f, ready without a core %.0f, "
                     "disk faults %d, states %s, sleeps in %s" % (
                         p["name"], pid, p["lived"], p["ran"], p["waited"],
                         p["faults"], " ".join(
                             "%s:%d" % s for s in p["states"].items()),
                         p["place"] or "-"))
    return kind_of(whole, processes), lines + queue_lines(samples)


class Traced(nemesis.Nemesis):
    """The nemesis, which explains the windows of each round."""

    def __init__(self, o, sampler):
        super().__init__(o)
        self.sampler = sampler
        self.kinds = collections.Counter()

    def heard(self, verified, windows):
        super().heard(verified, windows)
        longest = max((s for s in windows if s["to"] == "all"),
                      key=lambda s: s["longest_ms"])
        if longest["longest_ms"] >= self.o.longer:
            self.explain(verified.began + longest["began_s"], longest)

    def explain(self, begin, silence):
        end = begin + silence["longest_ms"] / 1000
        samples = self.sampler.between(begin, end)
        if len(samples) < 2:
            kind, lines = "machine", ["%d samples" % len(samples)]
        else:
            kind, lines = told(samples)
        self.kinds[kind] += 1
        print("%9.3f  %s: no answer for %.0f ms: %s" % (
            begin - self.began, silence["kind"], silence["longest_ms"], kind))
        for line in lines + self.events():
            print("           " + line)
        for line in self.log:
            if begin - self.began - 6 < float(line.split()[0]) < \
                    end - self.began + 0.5:
                print(line)
        sys.stdout.flush()

    def events(self):
        """The folder for the events of the flight recorders."""
        where = tempfile.mkdtemp(prefix="unavailability-%d-" % self.o.seed)
        for i in range(self.q.replicas):
            with open(where + "/events%d" % i, "wb") as f:
                subprocess.run([self.o.quoin, "events", *self.q.to([i])],
                               stdout=f, stderr=subprocess.STDOUT)
        return ["events: " + where]


def more(p):
    p.add_argument("--longer", type=float, default=3000, metavar="MS",
                   help="explain windows from this length on (%(default)g)")
    p.add_argument("--keep", metavar="FILE", help="all samples")


def main():
    o = nemesis.parse(__doc__, more)
    sampler = Sampler(o.keep)
    try:
        traced = Traced(o, sampler)
        status = traced.run()
    finally:
        sampler.end()
    print("windows of %g ms and more, by round: %s" % (o.longer, ", ".join(
        "%d %s" % (n, k) for k, n in sorted(traced.kinds.items())) or "none"))
    return status


if __name__ == "__main__":
    sys.exit(main())
