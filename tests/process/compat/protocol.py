"""Malformed requests on a live server: each gets its error and the end of the
connection, never a crash or a hang (kvs/resp/RESP.md, section 1)."""

from wire import Closed, Connection, encode

LINE = 64 * 1024
BULK = 64 * 1024 * 1024
PING = encode("PING")
PONG = b"+PONG\r\n"


def error(text):
    return b"-ERR Protocol error: " + text + b"\r\n"


COUNT = error(b"invalid multibulk length")
LENGTH = error(b"invalid bulk length")
QUOTES = error(b"unbalanced quotes in request")
BIG_COUNT = error(b"too big mbulk count string")
BIG_LENGTH = error(b"too big bulk count string")
BIG_LINE = error(b"too big inline request")


def expected(c):
    return error(b"expected '$', got '" + c + b"'")


# (stream, reply before the end of the connection)
CLOSED = [
    *((b"*" + n + b"\r\n", COUNT) for n in (
        b"", b"a", b"1a", b" 1", b"1 ", b"+1", b"01", b"00", b"-", b"-0",
        b"--1", b"1.0", b"0x1", b"9223372036854775807",
        b"9223372036854775808", b"-9223372036854775809",
        b"18446744073709551617", b"4294967297")),
    *((b"*1\r\n$" + n + b"\r\n", LENGTH) for n in (
        b"", b"a", b"1a", b" 1", b"+1", b"01", b"-1", b"-0", b"-10",
        str(BULK + 1).encode(), b"4294967296", b"9223372036854775807",
        b"9223372036854775808", b"18446744073709551617")),
    *((b"*1\r\n" + c + b"1\r\n", expected(c)) for c in (
        b":", b"*", b"+", b"x", b" ", b"\xff", b"'", b"1")),
    (b"*1\r\n\r\n", expected(b" ")),
    (b"*1\r\n\n\r\n", expected(b" ")),
    (b"*2\r\n$4\r\nECHO\r\nx\r\n", expected(b"x")),
    (b"*2\r\n$4\r\nECHO\r\n$-1\r\n", LENGTH),
    (b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n*1\r\n", expected(b"*")),
    (b"\"\r\n", QUOTES),
    (b"'\r\n", QUOTES),
    (b"SET a \"b\r\n", QUOTES),
    (b"SET a 'b\\'\r\n", QUOTES),
    (b"\"a\"b\r\n", QUOTES),
    (b"POST / HTTP/1.1\r\n", b""),
    (b"post\r\n", b""),
    (b"Host: localhost\r\n", b""),
    (b"hOST: x\n", b""),
]

LONG = [
    (b"*" + b"1" * LINE, BIG_COUNT),
    (b"*1\r\n$" + b"1" * LINE, BIG_LENGTH),
    (b"*1\r\n" + b"x" * (LINE + 1), BIG_LENGTH),
    (b"x" * (LINE + 1), BIG_LINE),
    (b"PING " + b"x" * (LINE - 4), BIG_LINE),
    (b"*" + b"1" * (LINE - 1) + b"\r\n", COUNT),
    (b"*1\r\n$" + b"1" * (LINE - 1) + b"\r\n", LENGTH),
]

# Limits that Redis does not have.
OURS = [
    (b"*1048577\r\n", COUNT),
]

# (stream, reply); the connection remains open.
OPEN = [
    (b"\r\n", b""),
    (b"\n", b""),
    (b"  \t \r\n", b""),
    (b"*0\r\n", b""),
    (b"*-1\r\n", b""),
    (b"*-10\r\n", b""),
    (b"*-9223372036854775808\r\n", b""),
    (b"PING\n", PONG),
    (b"PING\r\n", PONG),
    (b"  ping  \r\n", PONG),
    (b"\"PING\"\r\n", PONG),
    (b"'ping'\r\n", PONG),
    (b"PI\"NG\"\r\n", PONG),
    (b"\"\\x50ING\"\n", PONG),
    (b"ECHO \"a b\\n\\x00\\\"\"\r\n", b"$6\r\na b\n\0\"\r\n"),
    (b"ECHO 'a\\'\\n'\r\n", b"$4\r\na'\\n\r\n"),
    (b"ECHO \"\"\r\n", b"$0\r\n\r\n"),
    (b"ECHO a\vb\r\n", b"$3\r\na\vb\r\n"),
    (b"*1\r\n$4\r\nPINGxx", PONG),
    (b"*1\rx$4\ryPING\r\n", PONG),
    (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", b"$0\r\n\r\n"),
    (b"GET / HTTP/1.1\r\n",
     b"-ERR wrong number of arguments for 'get' command\r\n"),
    (b"POSTS\r\n",
     b"-ERR unknown command 'POSTS', with args beginning with: \r\n"),
    (b"ECHO " + b"x" * (LINE - 5) + b"\n",
     b"$%d\r\n%s\r\n" % (LINE - 5, b"x" * (LINE - 5))),
]


def whole(stream):
    yield stream


def bytewise(stream):
    for i in range(len(stream)):
        yield stream[i:i + 1]


def send(c, stream, chop):
    """Send in pieces; the server may close before the last one."""
    try:
        for piece in chop(stream):
            c.send(piece)
    except Closed:
        pass


def until_closed(address, stream, chop):
    """All bytes before the end of the connection."""
    with Connection(address) as c:
        send(c, stream, chop)
        return c.rest()


def verdict(got, good):
    return None if good else f"got {got[:200]}"


def check_closed(address, stream, reply, chop):
    got = until_closed(address, stream, chop)
    return verdict(got, got == reply)


def check_dropped(address, stream, _reply, chop):
    """Closed without a reply; replies in flight may be lost with it."""
    got = until_closed(address, stream, chop)
    return verdict(got, got.replace(PONG, b"") == b"")


def check_open(address, stream, reply, chop):
    token = b"$9\r\nstill ope\r\n"
    with Connection(address) as c:
        send(c, stream + encode("ECHO", "still ope"), chop)
        got = b""
        while not got.endswith(token):
            try:
                got += c.reply()
            except Closed:
                return f"closed after {got[:200]}"
        return verdict(got, got == reply + token)


def checks(server):
    """(function, stream, reply, chop)"""
    ours = [] if server.is_redis else OURS
    for stream, reply in CLOSED + ours:
        yield check_closed, stream, reply, whole
        yield check_closed, stream, reply, bytewise
        check = check_closed if reply else check_dropped
        yield check, PING + stream + PING, PONG + reply, whole
        yield check, b"PING\r\n" * 2 + stream, PONG * 2 + reply, whole
    for stream, reply in LONG:
        yield check_closed, stream, reply, whole
        yield check_closed, PING + stream, PONG + reply, whole
    for stream, reply in OPEN:
        yield check_open, stream, reply, whole
        yield check_open, stream * 2, reply * 2, whole
        if len(stream) < 100:
            yield check_open, stream, reply, bytewise


# Requests that end in the middle: the client goes, the server stays.
UNFINISHED = [b"*", b"*1", b"*1\r", b"*1\r\n", b"*1\r\n$", b"*1\r\n$4\r\nPI",
              b"*1\r\n$4\r\nPING", b"*1\r\n$4\r\nPING\r", b"PIN", b"\"a",
              b"*2\r\n$4\r\nECHO\r\n$67108864\r\nabc", b"*1048576\r\n$1\r\na"]


def run(server, _opts):
    total, wrong = 0, []
    for address in server.addresses:
        for check, stream, reply, chop in checks(server):
            total += 1
            bad = check(address, stream, reply, chop)
            if bad:
                wrong.append(f"port {address[1]}: {stream[:80]} "
                             f"({len(stream)} bytes, {chop.__name__}): "
                             f"expected {reply[:80]}: {bad}")
        for stream in UNFINISHED:
            total += 1
            with Connection(address) as c:
                c.send(PING + stream)
                c.half_close()
                got = c.rest()
                if got not in (b"", PONG):
                    wrong.append(f"unfinished {stream[:80]}: got {got[:80]}")
        server.check_alive()
    return total, wrong
