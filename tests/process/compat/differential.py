"""The same random commands to a reference redis-server and to the server, with
the replies compared byte by byte. Everything follows from the seed; a
difference is reported with the seed and the step, and ends the run (the stores
differ from there)."""

import random
import re

from server import Server
from wire import Closed, Connection, encode, show

KEYS = [b"a", b"b", b"c", b"k1", b"k2", b"counter", b"float", b"",
        b"\x00\xff\r\n", b"long" * 50]
VALUES = [b"", b"0", b"1", b"-1", b"10", b"007", b"+5", b" 5", b"-0", b"1.5",
          b"3.0e3", b"x", b"hello world", b"\x00", b"\r\n$3\r\n", b"inf",
          b"9223372036854775807", b"-9223372036854775808",
          b"9223372036854775808", b"0.1", b"1e17", b"v" * 300]
INTEGERS = [b"0", b"1", b"-1", b"2", b"5", b"-7", b"100", b"12345678901",
            b"9223372036854775807", b"-9223372036854775808",
            b"9223372036854775806", b"9223372036854775808", b"x", b"", b"+1",
            b"01", b"-0", b"1.0", b" 1"]
FLOATS = [b"0.1", b"0.2", b"-0.5", b"1e3", b"3.0e-5", b"1.25", b"100", b"-1",
          b"0", b"1e17", b"1e-17", b"x", b"", b"nan", b"inf", b"-inf", b" 1",
          b"5.", b".5", b"1.123456789012345678"]
OFFSETS = [b"0", b"1", b"3", b"10", b"50", b"-1", b"-2", b"-5", b"-100",
           b"67108864", b"9223372036854775807", b"-9223372036854775808", b"x",
           b""]
PATTERNS = [b"*", b"?", b"k?", b"k*", b"[ab]", b"[^a]", b"[a-c]", b"*1", b"a",
            b"\\a", b"", b"**", b"*o*", b"[", b"c*r", b"[!a]"]
WORDS = [b"NX", b"XX", b"GET", b"nx", b"xx", b"get", b"FOO", b""]


class Commands:
    def __init__(self, seed):
        self.rng = random.Random(seed)

    def key(self):
        return self.rng.choice(KEYS)

    def value(self):
        if self.rng.random() < 0.3:
            n = self.rng.choice((1, 5, 20, 43, 44, 45, 200, 5000))
            return bytes(self.rng.randrange(256) for _ in range(n))
        return self.rng.choice(VALUES)

    def some(self, make, at_most=4):
        return [make() for _ in range(self.rng.randint(1, at_most))]

    def pairs(self):
        return [x for _ in range(self.rng.randint(1, 4))
                for x in (self.key(), self.value())]

    def pick(self, values):
        return self.rng.choice(values)

    def set(self):
        words = [self.pick(WORDS) for _ in
                 range(self.rng.choice((0, 0, 0, 1, 1, 2, 3)))]
        return [self.key(), self.value(), *words]

    def table(self):
        """(weight, name, arguments)"""
        key, value, pick = self.key, self.value, self.pick
        return [
            (10, "GET", lambda: [key()]),
            (12, "SET", self.set),
            (3, "SETNX", lambda: [key(), value()]),
            (3, "GETSET", lambda: [key(), value()]),
            (3, "GETDEL", lambda: [key()]),
            (4, "MGET", lambda: self.some(key)),
            (4, "MSET", self.pairs),
            (4, "MSETNX", self.pairs),
            (5, "DEL", lambda: self.some(key)),
            (2, "UNLINK", lambda: self.some(key)),
            (4, "EXISTS", lambda: self.some(key)),
            (2, "TOUCH", lambda: self.some(key)),
            (2, "TYPE", lambda: [key()]),
            (4, "STRLEN", lambda: [key()]),
            (5, "APPEND", lambda: [key(), value()]),
            (5, "GETRANGE", lambda: [key(), pick(OFFSETS), pick(OFFSETS)]),
            (5, "SETRANGE", lambda: [key(), pick(OFFSETS), value()]),
            (3, "GETBIT", lambda: [key(), pick(OFFSETS)]),
            (3, "SETBIT", lambda: [key(), pick(OFFSETS), pick((b"0", b"1", b"2"))]),
            (5, "INCR", lambda: [key()]),
            (5, "DECR", lambda: [key()]),
            (5, "INCRBY", lambda: [key(), pick(INTEGERS)]),
            (5, "DECRBY", lambda: [key(), pick(INTEGERS)]),
            (5, "INCRBYFLOAT", lambda: [key(), pick(FLOATS)]),
            (3, "DBSIZE", lambda: []),
            (1, "FLUSHALL", lambda: [pick((b"ASYNC", b"SYNC", b"FOO"))]),
            (1, "FLUSHDB", lambda: []),
            (3, "KEYS", lambda: [pick(PATTERNS)]),
            (2, "RANDOMKEY", lambda: []),
            (3, "SELECT", lambda: [pick((b"0", b"0", b"1", b"15", b"16",
                                         b"-1", b"x"))]),
            (2, "PING", lambda: [value()]),
            (2, "ECHO", lambda: [value()]),
            (1, "HELLO", lambda: [pick((b"2", b"3", b"3", b"4", b"x"))]),
            (1, "RESET", lambda: []),
            (1, "CLIENT", lambda: [pick((b"GETNAME", b"FOO"))]),
            (1, "CLIENT", lambda: [b"SETNAME", value()]),
            (1, "NOSUCH", lambda: self.some(value)),
        ]

    def one(self):
        table = self.table()
        _, name, make = self.rng.choices(table, [t[0] for t in table])[0]
        args = make()
        if self.rng.random() < 0.03:  # too many or too few
            args = args[:-1] if self.rng.random() < 0.5 else [*args, value_x()]
        if self.rng.random() < 0.3:
            name = name.lower()
        return [name.encode(), *args]


def value_x():
    return b"surplus"


def normal(args, raw):
    """The reply in the form that is compared."""
    name = args[0].upper()
    if name == b"KEYS" and raw.startswith(b"*"):
        lines = show(raw)
        # Elements are compared in any order, and may contain line ends.
        return sorted(re.split(rb"(?=\$\d+\r\n)", raw)), lines[0]
    if name == b"RANDOMKEY":
        return raw if raw.startswith((b"$-", b"_", b"-")) else b"any key"
    if name == b"HELLO" and raw[:1] != b"-":
        return re.sub(rb"\d+(\.\d+)*", b"#", raw)
    return raw


class Pair:
    """A connection to each of the two servers."""

    def __init__(self, one, two):
        self.both = (Connection(one), Connection(two))

    def run(self, batch, pieces):
        """@return [(reply, reply)] of a pipeline sent in pieces."""
        for piece in pieces:
            for c in self.both:
                c.send(piece)
        return [tuple(c.reply() for c in self.both) for _ in batch]

    def close(self):
        for c in self.both:
            c.close()


def cut(rng, data):
    if rng.random() < 0.5 or len(data) < 3:
        return [data]
    at = rng.randrange(1, len(data))
    return [data[:at], data[at:]]


def commands(reference, server, seed, count):
    """@return (commands run, [difference])"""
    make = Commands(seed)
    targets = server.addresses[1:] or server.addresses
    pairs = [Pair(reference.address, targets[i % len(targets)])
             for i in range(4)]
    done = 0
    try:
        pairs[0].run([1], [encode("FLUSHALL")])
        while done < count:
            pair = make.rng.choice(pairs)
            batch = [make.one() for _ in range(make.rng.choice((1, 1, 3, 10)))]
            data = b"".join(encode(*args) for args in batch)
            try:
                replies = pair.run(batch, cut(make.rng, data))
            except Closed:
                return done, [f"seed {seed}, step {done}: closed by {batch}"]
            for args, (expected, got) in zip(batch, replies):
                done += 1
                if normal(args, expected) != normal(args, got):
                    return done, [
                        f"seed {seed}, step {done}: {args}\n"
                        f"  redis {show(expected)}\n"
                        f"  got   {show(got)}\n  in the batch {batch}"]
    finally:
        for pair in pairs:
            pair.close()
    return done, []


SEEDS = [encode("PING"), encode("ECHO", "jelly"), encode("SET", "a", "1"),
         encode("GET", "a"), encode("INCR", "n"), b"PING\r\n",
         b"ECHO \"a b\"\r\n", b"ECHO 'it\\'s' \r\n", b"SET a \"\\x41\\n\"\r\n",
         b"*0\r\n", b"*-1\r\n", b"\r\n", encode("ECHO", "*1\r\n$4\r\nPING\r\n")]
BYTES = b"*$:+-0123456789\r\n\r\n \"'\\xaZ\t\xff"


def mutate(rng):
    """A damaged stream: no NUL (Redis stops at one), and no number so large
    that it would swallow the trailer."""
    while True:
        data = bytearray(b"".join(rng.choice(SEEDS) for _ in range(4)))
        for _ in range(rng.choice((0, 1, 1, 2, 3))):
            i = rng.randrange(len(data))
            kind = rng.randrange(3)
            if kind == 0:
                data[i] = rng.choice(BYTES)
            elif kind == 1:
                data.insert(i, rng.choice(BYTES))
            else:
                del data[i]
        if not re.search(rb"\d{4}", data):
            return bytes(data)


# Ends any request that the damage left open, so that the token is always
# reached or the connection closed.
TRAILER = b"\r\n" * 10000 + b"\n'\r\n"


def answer(address, data):
    with Connection(address) as c:
        try:
            c.send(data + TRAILER)
        except Closed:
            pass
        return c.rest()


def streams(reference, server, seed, count):
    """Damaged streams: the replies before the end must be equal."""
    rng = random.Random(seed)
    targets = server.addresses[1:] or server.addresses
    for done in range(count):
        data = mutate(rng)
        for address in (reference.address, server.address):
            with Connection(address) as c:
                c.command("FLUSHALL")
        expected = answer(reference.address, data)
        got = answer(targets[done % len(targets)], data)
        if expected != got:
            return done, [f"seed {seed}, stream {done}: {data}\n"
                          f"  redis {expected}\n  got   {got}"]
    return count, []


def run(server, opts):
    if opts.reference is None:
        return 0, ["no redis-server to compare with: install redis-server"]
    with Server(opts.reference) as reference:
        total, wrong = commands(reference, server, opts.seed, opts.count)
        n, bad = streams(reference, server, opts.seed, opts.count // 10)
    server.check_alive()
    return total + n, wrong + bad
