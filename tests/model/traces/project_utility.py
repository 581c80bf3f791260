"""The utility log of a trace (tests/sim/paxos/run_trace.h) as records of numbers for
replay_utility.pml: the abstraction function, beside what utility_state.h compares.

The model has one index, three voters, and ballots and values by number. So

    indices   each is a replay of its own
    voters    nodes: the next incarnation of one has its record
    ballots   of that index, in their order, from 1
    values    entries, from 1, as they appear
"""
import collections

BALLOTS = 32
VALUES = 7
ANY, NONE = -1, 0

PREPARE, RECORD, PROMISE, ACCEPT, ACCEPTED, CHOSEN, STOP = range(1, 8)
SENT = {"U_PREPARE": PREPARE, "U_PROMISE": PROMISE, "U_ACCEPT": ACCEPT,
        "U_ACCEPTED": ACCEPTED, "U_CHOSEN": CHOSEN}
KINDS = {"U_PREPARE": PREPARE, "record": RECORD, "U_PROMISE": PROMISE, "U_ACCEPT": ACCEPT,
         "U_ACCEPTED": ACCEPTED, "U_CHOSEN": CHOSEN}
LENGTHS = {"vote": 6, "take": 6, "send": 7}

Line = collections.namedtuple("Line", "number what node ballot voted value")


class TooLong(Exception):
    """More ballots or values than the model has."""


def ballot_of(text):
    """Its order is that of the tuple. None: there is none."""
    return None if text == "-" else tuple(int(part) for part in text.split("."))


class Trace:
    """The lines of each index."""

    def __init__(self, text):
        self.index = collections.defaultdict(list)
        self.length = text.count("\n")
        self.whole = True
        self.lives = {}
        for at, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if LENGTHS.get(words[0]) == len(words): # else it was cut off
                self.add(at, words)
        self.epoch = {index: index for index in sorted(self.index)}
        self.lines = self.index

    def add(self, at, words):
        node = int(words[1].split(".")[0])
        if words[0] == "vote":
            index, what, rest = words[2], RECORD, words[3:]
        elif words[0] == "send":
            index, what, rest = words[3], SENT[words[2]], words[4:]
        else:
            index, what, rest = words[3], None, [words[4], "-", words[5]]
        line = Line(at, what, node, ballot_of(rest[0]), ballot_of(rest[1]), rest[2])
        self.index[int(index)].append(line)

    def slots_of_interest(self, count):
        """Indices with the most ballots."""
        def ballots(index):
            return len({line.ballot for line in self.index[index]})
        return sorted(sorted(self.index, key=lambda i: (-ballots(i), i))[:count])


class Projection:
    def __init__(self, lines):
        self.lines = lines
        ballots = sorted({b for line in lines for b in (line.ballot, line.voted) if b})
        if len(ballots) > BALLOTS:
            raise TooLong("ballots")
        self.number = {None: NONE, **{b: n for n, b in enumerate(ballots, 1)}}
        self.values = {"-": NONE}
        self.promises = collections.defaultdict(int)  # ballot -> mask of what it has
        self.told, self.asked = set(), set()
        self.records = []

    def value_of(self, line):
        if line.what == PREPARE:  # its body is the entry below
            return NONE
        value = self.values.setdefault(line.value, len(self.values))
        if value > VALUES:
            raise TooLong("values")
        return value

    def append(self, line, what, mask, state=(ANY, ANY, ANY)):
        self.records.append([line.number, what, line.node, what, 0, self.number[line.ballot],
                             self.value_of(line), mask, *state])

    def ask(self, line, what):
        self.asked.add((what, line.ballot))
        self.append(line, what, self.promises[line.ballot] if what == ACCEPT else 0)

    def add_record(self, line):
        """What a proposer asks may be lost for want of memory. Then its own vote is the first
        sign of it."""
        own = line.ballot is not None and line.ballot[1] == line.node
        asks = ACCEPT if line.voted == line.ballot else PREPARE
        if own and (asks, line.ballot) not in self.asked:
            self.ask(line, asks)
        state = [self.number[line.ballot], self.number[line.voted], self.value_of(line)]
        self.append(line, RECORD, 0, state)
        if own:
            self.promises[line.ballot] |= 1 << line.node

    def add(self, line):
        if line.what is None:
            self.promises[line.ballot] |= 1 << int(line.value)
        elif line.what == RECORD:
            self.add_record(line)
        elif line.what in (PREPARE, ACCEPT):
            self.ask(line, line.what)
        elif line.what != CHOSEN or (line.node, line.value) not in self.told:
            if line.what == CHOSEN:
                self.told.add((line.node, line.value))
            self.append(line, line.what, self.number[line.voted])

    def run(self):
        """@return the records."""
        for line in self.lines:
            self.add(line)
        self.records.append([0, STOP] + [0] * 9)
        return self.records


def project(trace, index):
    """The records of an index. May raise TooLong."""
    return Projection(trace.index[index]).run()
