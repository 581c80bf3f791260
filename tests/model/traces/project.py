"""A trace of the machine (tests/sim/paxos/run_trace.h) as records of numbers for
replay_onepaxos.pml or replay_memacceptor.pml: the abstraction function, beside
what the headers there compare.

The model has two slots, few epochs, and a node per incarnation. So

    slots     two neighbours of the many of the run. What concerns others only is
              left out; `next` counts those of the two below it
    epochs    numbered without the VOTER entries between them
    nodes     incarnations, in the order in which they begin
    batches   numbered from 1, as they appear in these two slots
"""
import collections

NODES = 12
EPOCHS = 48
BATCHES = 7
LINES = 8000  # of a run; one that makes no progress is endless
ANY, NONE, SOME_BATCH = -1, 255, 255
FOLLOWER, PREPARING, ACTIVE, FROZEN = range(4)

BEGIN, STEP, DIE, PUT, STOP = range(1, 6)
RECEIVED = {"ACCEPT": 1, "ACCEPTED": 2, "PREPARE": 3, "PREPARED": 4, "SEAL": 5, "SEALED": 6,
            "STAGE_UL": 7, "STAGE": 8, "STAGED": 9, "LEARN": 10}
COMPLETE = 128
VOTER, ACCEPTOR = 3, 2

Entry = collections.namedtuple("Entry", "index kind leader acceptor tenure origin")
Line = collections.namedtuple("Line", "number what life received fields slots")


class TooLong(Exception):
    """More incarnations, epochs or batches than the model has."""


# ------------------------------------------------------------------ reading --

def number(text):
    return NONE if text == "-" else int(text)


def read_line(at, text):
    """One line of the trace; None: an entry."""
    words = text.split()
    what, life = words[0], words[1]
    received, fields, slots = None, {}, []
    rest = words[2:]
    if what == "step" and rest[0] == "recv":
        received = {"from": rest[1], "kind": rest[2]}
    for word in rest:
        if "=" in word:
            name, value = word.split("=")
            (received if received and name in ("epoch", "slot", "target", "ok", "batch")
             else fields)[name] = value
        elif word.count(":") == 2:
            slot, state, batch = word.split(":")
            slots.append((int(slot), state, batch))
    return Line(at, what, life, received, fields, slots)


class Trace:
    """The lines, the entries that were chosen, and what counts them."""

    def __init__(self, text):
        self.lines, self.entries, self.lives = [], {}, {}
        self.length = text.count("\n")
        for at, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if words[0] == "entry":
                self.add_entry(words[1:])
            elif line.count("=") >= 17 or words[0] == "end":  # else it was cut off
                self.lines.append(read_line(at, line))
        for line in self.lines:
            if line.what == "begin":
                self.lives.setdefault(line.life, len(self.lives))
        self.epoch = {}  # index of the utility log -> epoch of the model
        for index in sorted(self.entries):
            if self.entries[index].kind != VOTER:
                self.epoch[index] = len(self.epoch)
        self.puts = self.find_puts()
        self.whole = self.cut()

    def add_entry(self, words):
        index, kind, leader, acceptor, tenure, origin = words
        self.entries.setdefault(int(index), Entry(int(index), int(kind), leader, acceptor,
                                                  int(tenure), int(origin)))

    def find_puts(self):
        """Line number -> the entries that its incarnation begins to propose there, of
        those that are chosen in the end."""
        puts, found = collections.defaultdict(list), set()
        for line in self.lines:
            wish = line.fields.get("wish", "-")
            if wish == "-":
                continue
            index, kind, acceptor = wish.split("/")
            entry = self.entries.get(int(index))
            if (entry and entry.index not in found and entry.leader == line.life and
                    entry.kind == int(kind) and entry.acceptor == acceptor):
                found.add(entry.index)
                puts[line.number].append(entry)
        return puts

    def cut(self):
        """Leave out what is behind the bounds of the model: a prefix of a run is a run.
        @return false: something was left out."""
        for at, line in enumerate(self.lines):
            if (at == LINES or self.lives.get(line.life, NODES) >= NODES or
                    self.epoch_of(line.fields.get("idx", "0")) in range(EPOCHS, COMPLETE)):
                del self.lines[at:]
                return False
        return True

    def epoch_of(self, text):
        index = number(text)
        return NONE if index == NONE else self.epoch.get(index, NONE - 1)

    def node_of(self, life):
        return self.lives.get(life, NONE)

    def slots_of_interest(self, count):
        """First slots of pairs: around those in which a role changed, then others."""
        near, last, most = [], {}, 1
        for line in self.lines:
            if line.what == "end":
                continue
            role = (line.fields["role"], line.fields["idx"], line.fields["on"])
            most = max(most, int(line.fields["learned"]))
            if last.get(line.life, role) != role:
                at = min(int(line.fields["next"]), most + 1)
                near += [at, at - 1, int(line.fields["learned"]), most]
            last[line.life] = role
        spread = [1 + k * most // max(count, 1) for k in range(count)]
        wanted = [s for s in dict.fromkeys(near + spread) if 1 <= s <= most]
        return sorted(wanted[:count])


# --------------------------------------------------------------- projecting --

class Node:
    """What an incarnation has in the two slots."""

    def __init__(self):
        self.state, self.staged, self.learned = ["E", "E"], [0, 0], [0, 0]
        self.batch, self.ring = [0, 0], [0, 0]
        self.last = None


class Projection:
    def __init__(self, trace, first):
        self.trace, self.slots = trace, (first, first + 1)
        self.batches, self.nodes = {}, collections.defaultdict(Node)
        self.records = []

    def batch_of(self, place, digest):
        key = (place, digest)
        if key not in self.batches:
            if len(self.batches) == BATCHES:
                raise TooLong("batches")
            self.batches[key] = len(self.batches) + 1
        return self.batches[key]

    def place_of(self, slot):
        return self.slots.index(slot) if slot in self.slots else None

    def below(self, position):
        """How many of the two slots are below a position."""
        return sum(s < position for s in self.slots)

    def take_slots(self, node, line):
        """The slots that changed, then what follows from positions."""
        for slot, state, digest in line.slots:
            place = self.place_of(slot)
            if place is None:
                continue
            batch = 0 if state == "E" else self.batch_of(place, digest)
            if state in "SR":
                (node.staged if state == "S" else node.ring)[place] = batch
                continue
            node.state[place], node.batch[place] = state, batch
            if state == "L":
                node.learned[place] = batch
        for place, slot in enumerate(self.slots):
            if node.learned[place] == 0 and slot <= int(line.fields["learned"]):
                node.learned[place] = SOME_BATCH

    def staged_of(self, node, fields, place):
        slot = self.slots[place]
        if slot <= int(fields["st_base"]):
            return node.learned[place]
        return node.staged[place] if slot <= int(fields["st_hi"]) else 0

    def log_of(self, node, fields, place):
        """The slots of a leader, P and L; of others those that are P."""
        leads = int(fields["role"]) in (ACTIVE, FROZEN)
        if node.state[place] == "P":
            return node.batch[place]
        if not leads:
            return ANY
        value = node.learned[place] if self.slots[place] < int(fields["next"]) else 0
        return ANY if value == SOME_BATCH else value

    def acc_of(self, node, fields, place):
        value = node.learned[place] if self.slots[place] <= int(fields["hi"]) else 0
        return ANY if value == SOME_BATCH else value

    def state_of(self, line):
        """In the order of replay.h."""
        f, epoch = line.fields, self.trace.epoch_of
        node = self.nodes[line.life]
        self.take_slots(node, line)
        on, both = int(f["on"]), (0, 1)
        staged = [self.staged_of(node, f, p) if f["st_from"] != "-" else ANY for p in both]
        return [
            epoch(f["idx"]), int(f["role"]), epoch(f["ep"]), epoch(f["cep"]),
            self.below(int(f["next"])) if int(f["role"]) == ACTIVE else ANY,
            on, epoch(f["my_tenure"]) if on else ANY, epoch(f["promised"]) if on else ANY,
            *[self.acc_of(node, f, p) if on else ANY for p in both],
            epoch(f["st_from"]), *[ANY if s == SOME_BATCH else s for s in staged],
            *node.learned, *[self.log_of(node, f, p) for p in both], *node.batch,
            self.trace.node_of(f["leader"]), self.trace.node_of(f["acceptor"]),
            epoch(f["tenure"])]

    def message_of(self, line):
        """(kind, from, a, b, c), or None: not in the model, or of other slots."""
        got = line.received
        if got is None:
            return None
        kind, place = got["kind"], self.place_of(int(got["slot"]))
        epoch, target = self.trace.epoch_of(got["epoch"]), self.trace.epoch_of(got["target"])
        b = c = 0
        if kind in ("ACCEPT", "ACCEPTED", "LEARN"):
            if place is None:
                return None
            b = place
            c = self.batch_of(place, got["batch"]) if kind == "ACCEPT" else 0
        elif kind == "SEAL":
            b = target
        elif kind == "SEALED":
            b = target + COMPLETE * int(got["ok"])
        return RECEIVED[kind], self.trace.node_of(got["from"]), epoch, b, c

    def add(self, line, what, message, state):
        self.records.append([line.number, what, self.trace.node_of(line.life),
                             *(message or (0, 0, 0, 0, 0)), *state])

    def add_put(self, line, entry):
        epoch = self.trace.epoch[entry.index]
        if epoch < EPOCHS:
            state = [0] * 19 + [self.trace.node_of(entry.leader), self.trace.node_of(entry.acceptor),
                                self.trace.epoch_of(str(entry.tenure))]
            acceptor = self.trace.node_of(entry.acceptor)
            self.add(line, PUT, (0, acceptor, epoch, int(entry.kind == ACCEPTOR), 0), state)

    nothing = [0] * 22

    def run(self):
        """@return the records."""
        for line in self.trace.lines:
            if line.what == "end":
                self.add(line, DIE, None, self.nothing)
                continue
            message, state = self.message_of(line), self.state_of(line)
            what = BEGIN if line.what == "begin" else STEP
            node = self.nodes[line.life]
            if what == BEGIN or message or state != node.last:
                self.add(line, what, message, state)
            node.last = state
            for entry in self.trace.puts.get(line.number, []):
                self.add_put(line, entry)
        self.records.append([0, STOP, 0, 0, 0, 0, 0, 0] + self.nothing)
        return self.records


class MemoryProjection(Projection):
    """With the memory acceptor: nodes are nodes, and incarnations are outboxes."""

    def place_from(self, position):
        """A position among the two slots, counted from 1."""
        return 1 + self.below(position)

    def state_of(self, line):
        """In the order of memacceptor_state.h."""
        f, epoch = line.fields, self.trace.epoch_of
        node = self.nodes[line.life]
        self.take_slots(node, line)
        act = int(f["role"]) == ACTIVE
        owner, decided = f["register"].split("/")
        learned = [x if slot <= int(f["learned"]) else 0
                   for x, slot in zip(node.learned, self.slots)]
        copies = int(f["role"]) == PREPARING and f["copy"] != "-"
        return [
            epoch(f["idx"]), int(act), epoch(f["ep"]) if act else ANY,
            self.place_from(int(f["next"])) if act else ANY,
            epoch(owner), self.below(int(decided) + 1), self.below(int(f["learned"]) + 1),
            self.place_from(int(f["lo"])), *learned, *node.ring, int(copies),
            self.place_from(int(f["copied"])), self.trace.node_of(f["leader"])]

    def message_of(self, line):
        return None

    def add(self, line, what, message, state):
        node = int(line.life.split(".")[0])
        self.records.append([line.number, what, node, *(message or (0, 0, 0, 0, 0)), *state])

    def add_put(self, line, entry):
        epoch = self.trace.epoch[entry.index]
        if epoch < EPOCHS:
            self.add(line, PUT, (0, 0, epoch, 0, 0), [0] * 14 + [self.trace.node_of(entry.leader)])

    nothing = [0] * 15


def project(trace, first):
    """The records of the slots `first` and the next one. May raise TooLong."""
    return Projection(trace, first).run()


def project_memory(trace, first):
    """Likewise, with the memory acceptor."""
    return MemoryProjection(trace, first).run()
