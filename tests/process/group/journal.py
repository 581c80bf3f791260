"""What processes of examples/follow.c have kept of one group's changes: does
each have all, in order, or say what it misses?

    j = Journal(path)            its frames (examples/outlet.h)
    decided, wrong = together(journals)
                                 of each position, what was decided there
    j.judge(decided)             what is wrong with it
    j.state                      of the keys, as its changes have made it
"""
import struct

HEAD = struct.Struct("=10Q")
COMMAND, GAP, COPY = 1, 2, 3
BEGIN = (1, 0)  # the first position


class Frame:
    def __init__(self, head, data):
        (self.kind, *numbers) = head
        self.at, self.to = tuple(numbers[:2]), tuple(numbers[2:4])
        self.stamp, *self.origin = numbers[4:8]
        self.data = data

    def decided(self):
        return self.to, self.stamp, self.origin, self.data


def frames(path):
    with open(path, "rb") as f:
        text = f.read()
    at = 0
    while at + HEAD.size <= len(text):
        head = HEAD.unpack_from(text, at)
        end = at + HEAD.size + head[-1]
        if end > len(text):
            return
        yield Frame(head, text[at + HEAD.size:end])
        at = end


def items_of(copy):
    """A copy of the state: keys and values behind their lengths."""
    found, at = {}, 0
    while at < len(copy):
        key, value = struct.unpack_from("=II", copy, at)
        at += 8 + key + value
        found[copy[at - key - value:at - value]] = copy[at - value:at]
    return found


def change(state, command):
    """As `apply` of examples/store.c does."""
    verb, _, rest = command.partition(b" ")
    key, _, value = rest.partition(b" ")
    if verb == b"del":
        state.pop(key, None)
    elif verb == b"incr":
        state[key] = b"%d" % (int(state.get(key, b"0")) + int(value))
    else:
        state[key] = value


class Journal:
    def __init__(self, path):
        self.frames = list(frames(path))
        self.gaps, self.wrong, self.state = [], [], {}
        self.again = self.copies = 0
        self.at = BEGIN  # all before it was read, or lies in a gap
        for f in self.frames:
            {COMMAND: self.command, GAP: self.gap, COPY: self.copy}[f.kind](f)

    def bad(self, what, f):
        if len(self.wrong) < 3:
            self.wrong.append("%s: from %s to %s, was at %s" % (
                what, f.at, f.to, self.at))

    def command(self, f):
        """It follows the last one; or it was read before, by a process that
        was killed before it had stored its position."""
        if f.to <= self.at:
            self.again += 1
            return
        if f.at < self.at or f.at[0] == self.at[0] and f.at != self.at or \
                f.at[0] > self.at[0] and f.at[1] != 0 or \
                f.to != (f.at[0], f.at[1] + 1):
            self.bad("a command out of order", f)
        self.at = f.to
        change(self.state, f.data)

    def gap(self, f):
        if f.at > self.at or f.to <= f.at:
            self.bad("a gap that does not begin where it was", f)
        self.gaps.append((max(f.at, self.at), f.to))

    def copy(self, f):
        if not self.gaps or f.to != self.gaps[-1][1]:
            self.bad("a copy that does not follow a gap", f)
        self.copies += 1
        self.at = f.to  # of a member that lags, it is older than the last one
        self.state = items_of(f.data)

    def misses(self, at):
        return any(low <= at < high for low, high in self.gaps)

    def judge(self, decided):
        has = {f.at for f in self.frames if f.kind == COMMAND}
        for at in decided:
            if at not in has and not self.misses(at):
                self.wrong.append("the command at %s is not there" % (at,))
                break
        return self.wrong


def together(journals):
    decided, wrong = {}, []
    for j in journals:
        for f in j.frames:
            if f.kind == COMMAND and \
                    decided.setdefault(f.at, f.decided()) != f.decided():
                wrong.append("two commands at %s" % (f.at,))
    order = [decided[at] for at in sorted(decided)]
    if any(a[1] > b[1] for a, b in zip(order, order[1:])):
        wrong.append("a stamp goes back")
    return decided, wrong


def missed_by_all(journals):
    """Is there anything that lies in a gap of each?"""
    low = [(BEGIN, (1 << 64, 0))]
    for j in journals:
        low = [(max(a, c), min(b, d)) for a, b in low for c, d in j.gaps
               if max(a, c) < min(b, d)]
    return bool(low)
