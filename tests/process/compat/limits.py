"""Arguments, requests and values at, one below and one above each limit
(kvs/resp/RESP.md, section 9)."""

import hashlib

from wire import Closed, Connection, encode

MB = 1024 * 1024
BULK = 64 * MB
ARGS = 1048576
KEY = 64 * 1024

OK = b"+OK\r\n"
TOO_LONG = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n"
BAD_LENGTH = b"-ERR Protocol error: invalid bulk length\r\n"
BAD_COUNT = b"-ERR Protocol error: invalid multibulk length\r\n"
KEY_TOO_LONG = b"-ERR key is longer than max-key-len\r\n"


def value(n):
    return (b"0123456789abcdef" * (n // 16 + 1))[:n]


def largest_values(c):
    """(what, got, expected)"""
    for n in (MB, BULK - 1, BULK):
        data = value(n)
        yield f"SET of {n}", c.command("SET", "big", data), OK
        yield f"STRLEN of {n}", c.command("STRLEN", "big"), b":%d\r\n" % n
        got = c.command("GET", "big")
        yield (f"GET of {n}", hashlib.sha1(got).hexdigest(),
               hashlib.sha1(b"$%d\r\n%s\r\n" % (n, data)).hexdigest())
    yield "APPEND at the limit", c.command("APPEND", "big", "x"), TOO_LONG
    yield "APPEND of nothing", c.command("APPEND", "big", ""), \
        b":%d\r\n" % BULK
    yield "SETRANGE past it", c.command("SETRANGE", "big", BULK, "x"), TOO_LONG
    yield "SETRANGE at its end", c.command("SETRANGE", "big", BULK - 1, "x"), \
        b":%d\r\n" % BULK
    yield "GETRANGE of its end", c.command("GETRANGE", "big", -2, -1), \
        b"$2\r\n%sx\r\n" % value(BULK)[-2:-1]
    yield "DEL", c.command("DEL", "big"), b":1\r\n"
    yield "APPEND to nothing", c.command("APPEND", "big", value(MB)), \
        b":%d\r\n" % MB
    yield "SETRANGE grows", c.command("SETRANGE", "big", BULK - 1, "y"), \
        b":%d\r\n" % BULK
    yield "DEL", c.command("DEL", "big"), b":1\r\n"


def most_arguments(c):
    for n in (ARGS - 1, ARGS):
        data = b"*%d\r\n$3\r\nDEL\r\n" % n + b"$1\r\nk\r\n" * (n - 1)
        c.send(data)
        yield f"DEL with {n} arguments", c.reply(), b":0\r\n"
        c.send(b"*%d\r\n$6\r\nEXISTS\r\n" % n + b"$1\r\nk\r\n" * (n - 1))
        yield f"EXISTS with {n} arguments", c.reply(), b":0\r\n"


def longest_keys(c, ours):
    for n in (KEY - 1, KEY):
        yield f"SET with a key of {n}", c.command("SET", value(n), "1"), OK
        yield f"GET with a key of {n}", c.command("GET", value(n)), \
            b"$1\r\n1\r\n"
    if ours:
        for args in (("SET", value(KEY + 1), "1"), ("GET", value(KEY + 1)),
                     ("INCR", value(KEY + 1)), ("DEL", value(KEY + 1)),
                     ("MSET", "a", "1", value(KEY + 1), "1")):
            yield f"{args[0]} with a key of {KEY + 1}", c.command(*args), \
                KEY_TOO_LONG


def refused(address, ours):
    """Streams that end the connection."""
    yield (f"argument of {BULK + 1}", rest(address, b"*1\r\n$%d\r\n" %
                                           (BULK + 1)), BAD_LENGTH)
    if ours:
        yield (f"{ARGS + 1} arguments",
               rest(address, b"*%d\r\n" % (ARGS + 1)), BAD_COUNT)


def rest(address, data):
    with Connection(address) as c:
        c.send(data)
        return c.rest()


def many_connections(address, n):
    """n connections, all answered, all still open."""
    connections = []
    try:
        for _ in range(n):
            connections.append(Connection(address))
        for c in connections:
            c.send(encode("PING"))
        got = [c.reply() for c in connections]
        yield f"{n} connections", got.count(b"+PONG\r\n"), n
    except (OSError, Closed) as e:
        yield f"{n} connections", f"{e} after {len(connections)}", n
    finally:
        for c in connections:
            c.close()


def run(server, _opts):
    total, wrong = 0, []
    address = server.address
    ours = not server.is_redis
    with Connection(address) as c:
        for suite in (largest_values(c), most_arguments(c),
                      longest_keys(c, ours), refused(address, ours),
                      many_connections(address, 800)):
            for what, got, expected in suite:
                total += 1
                if got != expected:
                    wrong.append(f"{what}: expected {expected[:100]}, "
                                 f"got {got[:100]}"
                                 if isinstance(got, bytes) else
                                 f"{what}: expected {expected}, got {got}")
        c.command("FLUSHALL")
    server.check_alive()
    return total, wrong
