"""Why was no operation answered? The tormentor, and beside it a sampler that
tells of each silence what the replicas did meanwhile.

    silences.py --kills 20 --stops 5           options of tormentor.py
    silences.py --longer 3000 ...              silences from 3 s on (default)
    silences.py --keep FILE ...                all samples, one line each

To be run beside what brings the silences about: builds, lints, busy loops.

Every 50 ms a process of its own, before all others if it may (SCHED_FIFO),
writes down of each replica and of the load: its state, the place in the kernel
where it sleeps, how long it ran and how long it was ready and had no core
(/proc/PID/schedstat), faults that read a disk; of the machine: time stolen by
the host, pressure; and how much later than asked it woke itself. While a replica
is ready and gets no core for 0.25 s it looks into the queues of the kernel, too
(debugfs, as root): which group of processes (a session, a cgroup) has run on that
core, and by how much its virtual time was moved for that. So a silence is one of
these:

  machine   the sampler woke late, too: nothing ran on this machine
  cores     those that live were ready and got no core
  faults    those that live were stopped, or are not there
  work      those that live ran
  asleep    those that live slept: they wait for each other, or for a timer that
            is too long: to be looked at with `quoin events`, which is kept
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

from tests.process.soak import tormentor

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
    """The tormentor's servers, their replicas and its load."""
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
    """Since when each replica is ready and has not run."""

    def __init__(self):
        self.since = {}

    def any(self, now, processes):
        ready = {(pid, p[2]) for pid, p in processes.items()
                 if p is not None and p[1] == "R"}
        self.since = {key: self.since.get(key, now) for key in ready}
        return any(now - began >= STUCK_S for began in self.since.values())


def sample(parent, out):
    """Until the parent ends it. Each line: time, seconds too late, machine,
    {pid: process}, queues (or nothing)."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except OSError:
        print("the sampler may not run before all others; what it misses looks "
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


# ---- what a silence was ----

def process_sums(samples):
    """{pid: what it did between the first and the last of its samples}, ms."""
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
    """What the machine did between first and last, ms; `late`: the sampler."""
    first, last = samples[0], samples[-1]
    found = {name: (value - first[2].get(name, value)) / 1e6
             for name, value in last[2].items()}
    found["late"] = sum(x[1] for x in samples) * 1000
    found["latest"] = max(x[1] for x in samples) * 1000
    found["ms"] = (last[0] - first[0]) * 1000
    return found


def queue_lines(samples):
    """Who had the cores while a replica was ready and got none."""
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
    """Which of the kinds above it is: what most of the time went to, of the
    replicas that had it."""
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
    # Who has to wait for a core in a chain of answers makes the others sleep:
    # a third of the time is enough.
    if waited > lived / 3:
        return "cores"
    return "work" if ran > lived / 3 else "asleep"


def told(samples):
    """Kind and lines of a silence."""
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


class Traced(tormentor.Tormentor):
    """The tormentor, that explains the silences of each round."""

    def __init__(self, o, sampler):
        super().__init__(o)
        self.sampler = sampler
        self.kinds = collections.Counter()

    def heard(self, judge, silences):
        super().heard(judge, silences)
        longest = max((s for s in silences if s["to"] == "all"),
                      key=lambda s: s["longest_ms"])
        if longest["longest_ms"] >= self.o.longer:
            self.explain(judge.began + longest["began_s"], longest)

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
        """Where the flight recorders' events are kept."""
        where = tempfile.mkdtemp(prefix="silence-%d-" % self.o.seed)
        for i in range(self.q.replicas):
            with open(where + "/events%d" % i, "wb") as f:
                subprocess.run([self.o.quoin, "events", *self.q.to([i])],
                               stdout=f, stderr=subprocess.STDOUT)
        return ["events: " + where]


def more(p):
    p.add_argument("--longer", type=float, default=3000, metavar="MS",
                   help="explain silences from that on (%(default)g)")
    p.add_argument("--keep", metavar="FILE", help="all samples")


def main():
    o = tormentor.parse(__doc__, more)
    sampler = Sampler(o.keep)
    try:
        traced = Traced(o, sampler)
        status = traced.run()
    finally:
        sampler.end()
    print("silences of %g ms and more, by round: %s" % (o.longer, ", ".join(
        "%d %s" % (n, k) for k, n in sorted(traced.kinds.items())) or "none"))
    return status


if __name__ == "__main__":
    sys.exit(main())
