"""Clients of a World that never wait for each other, and what they have seen,
for `quoin verify`.

Each client has one request under way. A value is its number, which is written
once, and as many letters as that number says: so a reader knows all of it.
"""
import itertools
import random
import subprocess
import time

KEYS, COUNTERS = 24, 6
REFUSED_PAUSE = 0.002


def value_of(number, size):
    letter = chr(ord("a") + number % 26)
    return ("%d " % number).ljust(size, letter)


class History:
    """Lines for `quoin verify`, and what no line can say."""

    def __init__(self):
        self.lines, self.wrong = [], []
        self.numbers, self.clients = itertools.count(1), itertools.count(1)
        self.sizes = {}
        self.ended = self.unknown = 0

    def value(self, size):
        number = next(self.numbers)
        self.sizes[number] = size
        return number, value_of(number, size)

    def read(self, key, text):
        """@return the number that a value says."""
        number = int(text.split(" ", 1)[0])
        if key[0] == "k" and text != value_of(number,
                                              self.sizes.get(number, 0)):
            self.wrong.append("%s: %r... was never written" % (key, text[:24]))
        return number

    def add(self, client, invoked, call, answer):
        """@param answer  None: unknown"""
        responded = "-" if answer is None else str(time.monotonic_ns())
        self.lines.append("%d %d %s %s -> %s" % (
            client, invoked, responded, call,
            "?" if answer is None else answer))
        self.ended += answer is not None
        self.unknown += answer is None

    def verify(self, quoin, path):
        """@return what `quoin verify` says, None if all is well."""
        with open(path, "w") as f:
            f.write("\n".join(self.lines) + "\n")
        done = subprocess.run([quoin, "verify", path], capture_output=True,
                              text=True)
        return None if done.returncode == 0 else done.stdout + done.stderr


class Client:
    def __init__(self, load, where):
        self.load, self.where = load, where
        self.number = next(load.history.clients)
        self.busy = False

    def next(self):
        """One more request, unless the load has ended."""
        m = self.load.world.member[self.where]
        if self.load.over or self.where in self.load.gone:
            return
        self.busy = True
        call, line = self.load.request()
        began = time.monotonic_ns()
        m.ask(line, lambda answer: self.done(call, began, answer))

    def done(self, call, began, answer):
        self.busy = False
        history, world = self.load.history, self.load.world
        verb, key = call.split()[:2]
        if answer is None or answer == "unknown":
            if verb != "get":
                history.add(self.number, began, call, None)
                self.number = next(history.clients)
            world.after(0.01, self.next)
        elif answer.startswith("refused: "):
            why = answer[len("refused: "):]
            self.load.refused[why] = self.load.refused.get(why, 0) + 1
            world.after(REFUSED_PAUSE, self.next)
        else:
            if answer == "none":
                answer = "nil"
            elif answer.startswith("is "):
                answer = history.read(key, answer[3:])
            elif answer.startswith("ok "):
                answer = answer[3:]
            history.add(self.number, began, call, answer)
            self.load.progress[self.where] = history.ended
            world.after(0, self.next)


class Load:
    def __init__(self, world, seed, size_max):
        self.world, self.rng = world, random.Random(seed)
        self.size_max = size_max
        self.history = History()
        self.refused, self.progress = {}, {}
        self.gone = set()  # members that do not come back
        self.over = False
        self.clients = []

    def begin(self, where, count):
        for _ in range(count):
            c = Client(self, where)
            self.clients.append(c)
            c.next()

    def request(self):
        """@return the call as `quoin verify` reads it, and the line."""
        rng = self.rng
        key = "k%d" % rng.randrange(KEYS)
        counter = "c%d" % rng.randrange(COUNTERS)
        what = rng.random()
        if what < 0.45:
            size = int(16 * (self.size_max / 16) ** rng.random())
            number, text = self.history.value(size)
            return "set %s %d" % (key, number), "set %s %s" % (key, text)
        if what < 0.5:
            return ("del " + key,) * 2
        if what < 0.6:
            return ("incr %s 1" % counter,) * 2
        return ("get " + rng.choice((key, key, counter)),) * 2

    def end(self, seconds):
        """The clients' last requests end."""
        self.over = True
        self.world.until("the last requests end",
                         lambda: not any(c.busy for c in self.clients),
                         seconds)

    def read_all(self, members, seconds):
        """Each key is read at each member, after all else: what was
        acknowledged and is gone is no linearizable history."""
        names = ["k%d" % i for i in range(KEYS)] + \
            ["c%d" % i for i in range(COUNTERS)]
        for name in names:
            began = time.monotonic_ns()
            got = self.world.answers("get " + name, seconds, members)
            for answer in got.values():
                if answer is None or answer.startswith("refused"):
                    self.history.wrong.append("get %s: %s" % (name, answer))
                    continue
                self.history.add(
                    next(self.history.clients), began, "get " + name,
                    "nil" if answer == "none" else
                    self.history.read(name, answer[3:]))
