"""Unmodified clients: redis-cli, redis-benchmark, python3-redis."""

import re
import shutil
import subprocess

from wire import encode

TIMEOUT_S = 600


def tool(name, address, *args, data=None, status=0):
    """@return what a Redis tool prints."""
    path = shutil.which(name)
    if path is None:
        raise AssertionError(f"no {name}: install redis-tools")
    done = subprocess.run([path, "-p", str(address[1]), *args], input=data,
                          capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == status, (name, args, done)
    return done.stdout.decode(errors="replace")


def cli_one_shot(address):
    for args, expected in (
            (("FLUSHALL",), "OK"), (("SET", "a", "1"), "OK"),
            (("GET", "a"), "1"), (("INCR", "a"), "2"), (("GET", "no"), ""),
            (("MGET", "a", "no"), "2\n"), (("DBSIZE",), "1"),
            (("-n", "1", "DBSIZE"), "0"), (("PING",), "PONG"),
            (("--no-raw", "GET", "no"), "(nil)"),
            (("--no-raw", "INCR", "a"), "(integer) 3"),
            (("-3", "--no-raw", "GET", "no"), "(nil)"),
            (("-3", "GET", "a"), "3"),
            (("-3", "--no-raw", "CONFIG", "GET", "appendonly"),
             '1# "appendonly" => "no"'),
            (("-2", "CONFIG", "GET", "appendonly"), "appendonly\nno"),
            (("NOSUCH",), "ERR unknown command 'NOSUCH', with args beginning "
                          "with: \n"),
            (("-r", "3", "INCR", "a"), "4\n5\n6")):
        yield args, tool("redis-cli", address, *args), expected + "\n"


def cli_interactive(address):
    lines = (b"SET a 1\nGET a\nset b \"x y\"\nget b\nINCR c\nNOSUCH 1\n"
             b"SELECT 1\nDBSIZE\nSELECT 0\nMULTIPLE\nEXISTS a b c\nQUIT\n")
    expected = ("OK\n1\nOK\nx y\n1\nERR unknown command 'NOSUCH', with args "
                "beginning with: '1' \n\nOK\n0\nOK\nERR unknown command "
                "'MULTIPLE', with args beginning with: \n\n3\n")
    for proto in ((), ("-3",)):
        tool("redis-cli", address, "FLUSHALL")
        yield proto, tool("redis-cli", address, *proto, data=lines), expected


def cli_pipe(address):
    """A hundred thousand commands of the three ways to write one."""
    n = 100000
    tool("redis-cli", address, "FLUSHALL")
    data = b"".join(encode("SET", f"key:{i}", f"value:{i}") if i % 2 else
                    b"SET key:%d value:%d\r\n" % (i, i) for i in range(n))
    out = tool("redis-cli", address, "--pipe", data=data)
    yield "--pipe", f"errors: 0, replies: {n}" in out, True
    yield "--pipe", "Last reply received from server." in out, True
    yield "DBSIZE", tool("redis-cli", address, "DBSIZE"), f"{n}\n"
    yield "last", tool("redis-cli", address, "GET", f"key:{n - 1}"), \
        f"value:{n - 1}\n"
    out = tool("redis-cli", address, "--pipe", status=1,
               data=b"SET a 1\r\nNOSUCH\r\nINCR a\r\n")
    yield "--pipe with an error", "errors: 1, replies: 3" in out, True


BENCHMARK = ["PING_INLINE", "PING_MBULK", "SET", "GET", "INCR",
             "MSET (10 keys)"]


def benchmark(address):
    for options in ((), ("-P", "16"), ("-3",), ("-r", "1000", "-d", "1000"),
                    ("--threads", "2")):
        out = tool("redis-benchmark", address, "-t", "ping,set,get,incr,mset",
                   "-n", "10000", "-q", *options)
        done = re.findall(r"([A-Z_]+(?: \(10 keys\))?): "
                          r"[\d.]+ requests per second", out)
        yield options, done, BENCHMARK
        yield options, re.findall("error|warning", out.lower()), []


def python_redis(address):
    try:
        import redis
    except ImportError as e:
        raise AssertionError("no module redis: install python3-redis") from e
    r = redis.Redis(host=address[0], port=address[1], client_name="smoke")
    r.flushall()
    yield "set", r.set("a", "1"), True
    yield "set nx", r.set("a", "2", nx=True), None
    yield "set get", r.set("a", "3", get=True), b"1"
    yield "mget", r.mget("a", "no"), [b"3", None]
    yield "getname", r.client_getname(), "smoke"
    yield "info", r.info()["redis_mode"], "standalone"
    yield "loading", r.info()["loading"], 0
    yield "config", r.config_get("appendonly"), {"appendonly": "no"}
    yield "dbsize", r.dbsize(), 1
    yield "listed", "smoke" in [c["name"] for c in r.client_list()], True
    yield "time", len(r.time()), 2
    yield "incrbyfloat", r.incrbyfloat("f", 0.5), 0.5
    with r.pipeline(transaction=False) as p:
        for i in range(1000):
            p.set(f"k{i}", i)
            p.get(f"k{i}")
            p.incr("n")
        expected = [x for i in range(1000)
                    for x in (True, str(i).encode(), i + 1)]
        yield "pipeline", p.execute(), expected
    with r.pipeline(transaction=False) as p:
        p.set("a", "x").incr("a").get("a")
        got = p.execute(raise_on_error=False)
        yield "error in a pipeline", (got[0], str(got[1]), got[2]), \
            (True, "value is not an integer or out of range", b"x")
    text = redis.Redis(host=address[0], port=address[1], db=3,
                       decode_responses=True)
    yield "db 3", (text.dbsize(), text.set("a", "\u00e9"), text.get("a"),
                   r.get("a")), (0, True, "\u00e9", b"x")
    yield "keys", sorted(text.keys("*")), ["a"]
    r.flushall()
    r.close()
    text.close()


def run(server, _opts):
    total, wrong = 0, []
    for check in (cli_one_shot, cli_interactive, cli_pipe, benchmark,
                  python_redis):
        for what, got, expected in check(server.address):
            total += 1
            if got != expected:
                wrong.append(f"{check.__name__}: {what}: expected "
                             f"{expected!r:.400}, got {got!r:.400}")
    server.check_alive()
    return total, wrong
