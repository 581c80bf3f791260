"""The state that a quoind reports: roles, progress, living replicas."""
from tests.process.lib.quoind import Client, Error


def parsed(text):
    """{name: text} of the lines of INFO."""
    return dict(line.split(":", 1) for line in text.splitlines()
                if ":" in line)


def fields(lines, replica, line="replica"):
    """The INFO line of one replica: {name: text}."""
    line = lines.get("%s%d" % (line, replica), "")
    return dict(f.split("=") for f in line.split(",") if "=" in f)


def info(q, replica):
    """INFO's section Quoin, as that replica reports it: {name: text}."""
    c = q.client(replica)
    try:
        return parsed(c.call("INFO", "quoin").decode())
    finally:
        c.close()


class InfoView:
    """INFO's section Quoin as one replica reports it."""

    def __init__(self, text):
        lines = parsed(text)
        # None: the group has stopped.
        self.leader, self.acceptor = (
            None if lines[role] == "none" else int(lines[role])
            for role in ("leader", "acceptor"))
        self.in_sync = self.nodes(lines.get("in_sync", "0,1,2"))
        self.missing = self.nodes(lines["replicas_missing"])
        self.epoch = int(lines["epoch"])
        self.failovers = int(lines["failovers"])
        self.voters = self.nodes(lines["voters"])
        self.non_voting = self.nodes(lines["non_voting"])
        self.replica = {i: fields(lines, i)
                        for i in sorted(self.voters | self.non_voting)}

    @staticmethod
    def nodes(text):
        return {int(n) for n in text.split(",") if n.strip()}

    def online(self, i):
        return self.replica[i].get("state") == "online"

    def pid(self, i):
        return int(self.replica[i].get("pid", 0))

    def role(self, i):
        if not self.online(i):
            return "joiner"
        names = [n for n, who in (("leader", self.leader),
                                  ("acceptor", self.acceptor)) if who == i]
        return "+".join(names) or "learner"

    def current(self, pids):
        """All are present, in their current incarnations, and have caught up.
        """
        return not self.missing and all(
            self.online(i) and int(r["lag"]) < 1000 and
            self.pid(i) == pids.get(i) for i, r in self.replica.items())


def pids_of(q):
    """{replica: pid} of those that live."""
    path = "/proc/%d/task/%d/children" % (q.proc.pid, q.proc.pid)
    found = {}
    with open(path) as f:
        for pid in f.read().split():
            try:
                with open("/proc/%s/comm" % pid) as comm:
                    name = comm.read().strip()
                with open("/proc/%s/stat" % pid) as stat:
                    state = stat.read().rpartition(")")[2].split()[0]
            except OSError:
                continue  # it has just ended
            if name.startswith("quoind-") and state != "Z":
                found[int(name[7:])] = int(pid)
    return found


def look(q, replicas):
    """The view of the first of these that answers; None if none does."""
    for i in replicas:
        try:
            c = Client(q.port + 1 + i, timeout=2)
            try:
                got = c.call("INFO", "quoin")
            finally:
                c.close()
        except OSError:
            continue
        if not isinstance(got, Error):
            view = InfoView(got.decode())
            view.said_by = i
            return view
    return None
