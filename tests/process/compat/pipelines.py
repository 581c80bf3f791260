"""Pipelines: the replies do not depend on how the stream was cut, and on one
connection a read sees every earlier and no later write (kvs/resp/RESP.md, 8.7)."""

import random

from wire import Closed, Connection, encode


def stream(*lines):
    return [encode(*line.split(" ")) for line in lines]


OK = b"+OK\r\n"
NULL = {2: b"$-1\r\n", 3: b"_\r\n"}


def bulk(text):
    return b"$%d\r\n%s\r\n" % (len(text), text)


def cases(proto):
    """(name, requests, replies), starting from an empty store."""
    null = NULL[proto]
    yield ("writes and reads of one key",
           stream("SET a 1", "GET a", "SET a 2", "GET a"),
           [OK, bulk(b"1"), OK, bulk(b"2")])
    yield ("increments", stream(*["INCR c"] * 8),
           [b":%d\r\n" % (i + 1) for i in range(8)])
    yield ("increments and reads", stream(*["INCR c", "GET c"] * 5),
           [x for i in range(1, 6)
            for x in (b":%d\r\n" % i, bulk(b"%d" % i))])
    yield ("reads before the first write",
           stream("GET a", "EXISTS a", "SET a 1", "EXISTS a", "DEL a",
                  "GET a", "STRLEN a"),
           [null, b":0\r\n", OK, b":1\r\n", b":1\r\n", null, b":0\r\n"])
    yield ("every kind of read behind a write",
           stream("MSET a 1 b 2", "MGET a b", "DBSIZE", "APPEND a xy",
                  "GETRANGE a 1 -1", "TYPE a", "FLUSHALL", "DBSIZE",
                  "RANDOMKEY", "KEYS *", "SET a 1", "KEYS *"),
           [OK, b"*2\r\n" + bulk(b"1") + bulk(b"2"), b":2\r\n", b":3\r\n",
            bulk(b"xy"), b"+string\r\n", OK, b":0\r\n", null, b"*0\r\n", OK,
            b"*1\r\n" + bulk(b"a")])
    yield ("local commands keep their place",
           stream("SET a 1", "PING", "INCR a", "ECHO x", "GET a", "NOSUCH",
                  "GET", "INCR a", "PING y"),
           [OK, b"+PONG\r\n", b":2\r\n", bulk(b"x"), bulk(b"2"),
            b"-ERR unknown command 'NOSUCH', with args beginning with: \r\n",
            b"-ERR wrong number of arguments for 'get' command\r\n",
            b":3\r\n", bulk(b"y")])
    yield ("databases",
           stream("SET a 0", "SELECT 1", "GET a", "SET a 1", "SELECT 0",
                  "GET a", "SELECT 1", "GET a"),
           [OK, OK, null, OK, OK, bulk(b"0"), OK, bulk(b"1")])
    yield ("the protocol changes from the next reply on",
           stream("SET a 1", "GET b", "RESET", "GET b", "SET a 2", "GET a"),
           [OK, null, b"+RESET\r\n", NULL[2], OK, bulk(b"2")])
    yield ("replies switched off",
           stream("SET a 1", "CLIENT REPLY SKIP", "SET a 2", "GET a",
                  "CLIENT REPLY OFF", "INCR a", "GET a", "CLIENT REPLY ON",
                  "GET a"),
           [OK, bulk(b"2"), OK, bulk(b"3")])
    yield ("nothing after QUIT",
           stream("SET a 1", "QUIT", "SET a 2"), [OK, OK])


class Fence:
    """Lets the server read all sent bytes: after two round trips on another
    connection, its loop has seen everything that came before."""

    def __init__(self, address):
        self.connection = Connection(address)

    def wait(self):
        for _ in range(2):
            self.connection.command("PING")


def send_in(c, fence, pieces):
    """The server may close before the last piece (QUIT)."""
    try:
        for i, piece in enumerate(pieces):
            if i:
                fence.wait()
            c.send(piece)
    except Closed:
        pass


def read(c, n, ends):
    if ends:
        return c.rest()
    return b"".join(c.reply() for _ in range(n))


def check_case(address, proto, fence, case, cuts):
    """@return the wrong cuts, as text."""
    name, requests, replies = case
    data, expected = b"".join(requests), b"".join(replies)
    wrong = []
    for cut in cuts(len(data)):
        fence.connection.command("FLUSHALL")
        pieces = [data[a:b] for a, b in zip((0, *cut), (*cut, len(data)))]
        with Connection(address, proto) as c:
            send_in(c, fence, pieces)
            got = read(c, len(replies), "QUIT" in name)
        if got != expected:
            wrong.append(f"port {address[1]}, RESP{proto}, {name}, cut at "
                         f"{cut}: expected {expected}, got {got}")
    return wrong


def every_cut(n):
    return [(i,) for i in range(1, n)]


def some_cuts(n):
    """Whole, byte by byte, and some random ones, always the same."""
    rng = random.Random(n)
    yield ()
    yield tuple(range(1, n))
    for _ in range(10):
        k = rng.randrange(1, min(n - 1, 6))
        yield tuple(sorted(rng.sample(range(1, n), k)))


def check_stream(address, seed, count):
    """Thousands of requests without waiting: writer and reader interleaved in
    random pieces; a model gives the expected replies."""
    rng = random.Random(seed)
    model, requests, replies = {}, [], []
    for i in range(count):
        key = b"s%d" % rng.randrange(20)
        kind = rng.randrange(4)
        if kind == 0:
            model[key] = b"%d" % i * rng.choice((1, 1, 1, 50, 3000))
            requests.append(encode("SET", key, model[key]))
            replies.append(OK)
        elif kind == 1:
            requests.append(encode("APPEND", key, "x"))
            model[key] = model.get(key, b"") + b"x"
            replies.append(b":%d\r\n" % len(model[key]))
        else:
            requests.append(encode("GET", key))
            replies.append(bulk(model[key]) if key in model else NULL[2])
    data = b"".join(requests)
    with Connection(address) as c:
        c.command("FLUSHALL")
        at, taken = 0, 0
        sent_end = 0
        for i, request in enumerate(requests):
            sent_end += len(request)
            if rng.randrange(40) and i + 1 < count:
                continue
            end = len(data) if i + 1 == count else sent_end - rng.randrange(9)
            c.send(data[at:end])
            at = end
            while taken < i - 200:
                if c.reply() != replies[taken]:
                    return [f"seed {seed}: wrong reply {taken}"]
                taken += 1
        for j in range(taken, count):
            if c.reply() != replies[j]:
                return [f"seed {seed}: wrong reply {j}"]
    return []


def check_replicas(addresses, count):
    """A SET acknowledged by one replica is seen by a GET on every other."""
    wrong = []
    connections = [Connection(a) for a in addresses]
    for i in range(count):
        value = b"%d" % i
        writer = connections[i % len(connections)]
        if writer.command("SET", "shared", value) != OK:
            wrong.append(f"SET {i} failed")
        for reader in connections:
            got = reader.command("GET", "shared")
            if got != bulk(value):
                wrong.append(f"after SET {i}: GET gives {got}")
    for c in connections:
        c.close()
    return wrong


def run(server, _opts):
    total, wrong = 0, []
    for address in server.addresses:
        fence = Fence(address)
        for proto in (2, 3):
            for i, case in enumerate(cases(proto)):
                cuts = every_cut if i < 3 and proto == 2 else some_cuts
                total += len(list(cuts(len(b"".join(case[1])))))
                wrong += check_case(address, proto, fence, case, cuts)
        for seed in range(3):
            total += 3000
            wrong += check_stream(address, seed, 3000)
        fence.connection.close()
    total += 300
    wrong += check_replicas(server.addresses, 300)
    server.check_alive()
    return total, wrong
