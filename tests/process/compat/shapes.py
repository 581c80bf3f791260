"""Replies that differ between servers and over time: their form is checked,
and the relations between them."""

import os
import re

from wire import Connection, decode

HERE = os.path.dirname(os.path.abspath(__file__))

CLIENT_FIELDS = ("id addr laddr fd name age idle flags db sub psub ssub multi "
                 "qbuf qbuf-free argv-mem multi-mem rbs rbp obl oll omem "
                 "tot-mem events cmd user redir resp").split()
LATER_FIELDS = ["lib-name", "lib-ver"]  # of 7.2

# Section -> fields; `n` number, `s` anything.
INFO = {
    "server": "redis_version:s redis_git_sha1:s redis_mode:s process_id:n "
              "run_id:s tcp_port:n uptime_in_seconds:n",
    "clients": "connected_clients:n blocked_clients:n maxclients:n",
    "memory": "used_memory:n used_memory_human:s used_memory_rss:n "
              "used_memory_peak:n maxmemory:n",
    "persistence": "loading:n rdb_bgsave_in_progress:n "
                   "aof_rewrite_in_progress:n",
    "stats": "total_connections_received:n total_commands_processed:n "
             "instantaneous_ops_per_sec:n rejected_connections:n "
             "expired_keys:n evicted_keys:n keyspace_hits:n keyspace_misses:n",
    "replication": "role:s connected_slaves:n master_repl_offset:n",
    "cpu": "used_cpu_sys:f used_cpu_user:f",
    "cluster": "cluster_enabled:n",
}
KINDS = {"n": r"-?\d+$", "s": r".*$", "f": r"\d+\.\d+$"}


class Wrong(list):
    """The differences found, and the number of checks."""

    checked = 0


def check(wrong, what, got, expected):
    wrong.checked += 1
    if got != expected:
        wrong.append(f"{what}: expected {expected!r:.300}, got {got!r:.300}")


def info(c, *sections):
    """{field: value} and the section titles."""
    text = decode(c.command("INFO", *sections)).decode()
    fields, titles = {}, []
    for line in text.split("\r\n"):
        if line.startswith("# "):
            titles.append(line[2:].lower())
        elif line:
            name, value = line.split(":", 1)
            fields[name] = value
    return fields, titles


def check_info(c, server, wrong):
    everything, titles = info(c)
    for section, spec in INFO.items():
        check(wrong, f"INFO has {section}", section in titles, True)
        alone, only = info(c, section.upper())
        check(wrong, f"INFO {section}", only, [section])
        for item in spec.split():
            name, kind = item.split(":")
            for fields in (everything, alone):
                value = fields.get(name)
                if value is None or not re.match(KINDS[kind], value):
                    wrong.append(f"INFO: {name}:{value}")
    for name, value in (("redis_mode", "standalone"), ("role", "master"),
                        ("loading", "0"), ("cluster_enabled", "0")):
        check(wrong, name, everything.get(name), value)
    check(wrong, "INFO nosuch", decode(c.command("INFO", "nosuch")), b"")
    check(wrong, "two sections", sorted(info(c, "cpu", "server")[1]),
          ["cpu", "server"])
    for word in ("all", "everything", "default"):
        got = info(c, word)[1]
        check(wrong, f"INFO {word}", "server" in got and "memory" in got, True)
    check(wrong, "commandstats", "cmdstat_info" in info(c, "all")[0], True)
    if not server.is_redis:
        check(wrong, "server_name", everything.get("server_name"), "quoind")
        check(wrong, "section quoin", "quoin" in titles, True)


def check_keyspace(c, wrong):
    c.command("FLUSHALL")
    check(wrong, "no db0 when empty", "db0" in info(c, "keyspace")[0], False)
    c.command("MSET", "a", 1, "b", 2)
    got = info(c, "keyspace")[0].get("db0", "")
    check(wrong, "db0", got, "keys=2,expires=0,avg_ttl=0")
    c.command("SELECT", 3)
    c.command("SET", "a", 1)
    c.command("SELECT", 0)
    got = info(c, "keyspace")[0].get("db3", "")
    check(wrong, "db3", got, "keys=1,expires=0,avg_ttl=0")
    c.command("FLUSHALL")


def client_line(line):
    return [tuple(pair.split("=", 1)) for pair in line.split(" ")]


def check_client_fields(wrong, line):
    names = [name for name, _ in client_line(line)]
    n = len(CLIENT_FIELDS)
    check(wrong, "client fields", names[:n], CLIENT_FIELDS)
    check(wrong, "later client fields",
          [x for x in names[n:] if x not in LATER_FIELDS], [])


def client_list(c, *args):
    """{id: {field: value}}"""
    text = decode(c.command("CLIENT", "LIST", *args)).decode()
    lines = [dict(client_line(x)) for x in text.split("\n") if x]
    return {int(x["id"]): x for x in lines}


def check_clients(addresses, wrong):
    """Connections of every replica, seen from one."""
    connections = [Connection(a, 2 + i % 2) for i, a in enumerate(addresses * 2)]
    c = connections[0]
    ids = [decode(x.command("CLIENT", "ID")) for x in connections]
    check(wrong, "ids are unique", len(set(ids)), len(ids))
    check(wrong, "id stays", decode(c.command("CLIENT", "ID")), ids[0])
    for i, x in enumerate(connections):
        x.command("CLIENT", "SETNAME", f"conn-{i}")
        x.command("SELECT", i % 16)
        mine = decode(x.command("CLIENT", "INFO")).decode()
        check_client_fields(wrong, mine.rstrip("\n"))
        fields = dict(client_line(mine.rstrip("\n")))
        for name, value in (("id", str(ids[i])), ("name", f"conn-{i}"),
                            ("db", str(i % 16)), ("resp", str(2 + i % 2)),
                            ("flags", "N"), ("cmd", "client|info"),
                            ("user", "default")):
            check(wrong, f"CLIENT INFO {name}", fields.get(name), value)
    listed = client_list(c)
    for i, identity in enumerate(ids):
        entry = listed.get(identity, {})
        check(wrong, "CLIENT LIST name", entry.get("name"), f"conn-{i}")
        port = connections[i].socket.getsockname()[1]
        check(wrong, "CLIENT LIST addr", entry.get("addr"),
              f"127.0.0.1:{port}")
    some = client_list(c, "ID", ids[-1], ids[0])
    check(wrong, "CLIENT LIST ID", set(some), {ids[0], ids[-1]})
    check(wrong, "CLIENT LIST TYPE normal",
          set(ids) <= set(client_list(c, "TYPE", "normal")), True)
    check_kill(connections, ids, wrong)
    for x in connections:
        x.close()


def check_kill(connections, ids, wrong):
    """From the first connection: by id, by address, then its own."""
    c, last, other = connections[0], connections[-1], connections[1]
    check(wrong, "CLIENT KILL ID", c.command("CLIENT", "KILL", "ID", ids[-1]),
          b":1\r\n")
    check(wrong, "killed", last.rest(), b"")
    if other is not last:
        port = other.socket.getsockname()[1]
        check(wrong, "CLIENT KILL addr",
              c.command("CLIENT", "KILL", f"127.0.0.1:{port}"), b"+OK\r\n")
        check(wrong, "killed by address", other.rest(), b"")
    check(wrong, "kill itself: skipped",
          c.command("CLIENT", "KILL", "ID", ids[0]), b":0\r\n")
    check(wrong, "kill itself",
          c.command("CLIENT", "KILL", "ID", ids[0], "SKIPME", "no"),
          b":1\r\n")
    check(wrong, "killed itself", c.rest(), b"")


def check_time(c, wrong):
    before = [int(x) for x in decode(c.command("TIME"))]
    after = [int(x) for x in decode(c.command("TIME"))]
    check(wrong, "TIME", before[0] > 1600000000 and before[1] < 1000000, True)
    check(wrong, "TIME increases", before <= after, True)


def load_commands():
    """{name: (arity, flags, first, last, step)}, from a Redis 7.0."""
    table = {}
    with open(os.path.join(HERE, "commands.txt"), encoding="ascii") as f:
        for line in f:
            if not line.startswith("#"):
                name, arity, flags, *keys = line.split()
                table[name] = (
                    int(arity), [] if flags == "-" else flags.split(","),
                    *(int(k) for k in keys))
    return table


def check_commands(c, server, wrong):
    names = [x.decode() for x in decode(c.command("COMMAND", "LIST"))]
    names = [x for x in names if "|" not in x]  # subcommands
    count = decode(c.command("COMMAND", "COUNT"))
    check(wrong, "COMMAND COUNT", count, len(names))
    check(wrong, "names once", len(set(names)), len(names))
    check(wrong, "COMMAND", len(decode(c.command("COMMAND"))), count)
    for name, (arity, flags, *keys) in load_commands().items():
        check(wrong, f"COMMAND LIST has {name}", name in names, True)
        entry = decode(c.command("COMMAND", "INFO", name))[0]
        if entry is None:
            wrong.append(f"COMMAND INFO {name}: null")
            continue
        got = (entry[0].decode(), entry[1],
               sorted(x.decode() for x in entry[2]), *entry[3:6])
        check(wrong, f"COMMAND INFO {name}", got, (name, arity, flags, *keys))
        check(wrong, f"COMMAND INFO {name}: elements", len(entry), 10)
        check_docs(c, name, wrong)
    if server.is_redis:
        return
    unknown = [n for n in names if n not in load_commands()]
    print(f"commands beyond the list: {' '.join(sorted(unknown))}")


def check_docs(c, name, wrong):
    docs = decode(c.command("COMMAND", "DOCS", name))
    if len(docs) != 2 or docs[0] != name.encode():
        wrong.append(f"COMMAND DOCS {name}: {docs!r:.200}")
        return
    fields = dict(zip(docs[1][::2], docs[1][1::2]))
    for key in (b"summary", b"since", b"group"):
        check(wrong, f"COMMAND DOCS {name}: {key.decode()}",
              bool(fields.get(key)), True)


def check_config(addresses, wrong):
    """A SET at one replica is a SET at all; globs; all or nothing."""
    connections = [Connection(a) for a in addresses]
    name = "client-query-buffer-limit"

    def seen():
        return [decode(c.command("CONFIG", "GET", name))[1]
                for c in connections]

    for i, c in enumerate(connections):
        value = str(100000000 + i).encode()
        check(wrong, "CONFIG SET", c.command("CONFIG", "SET", name, value),
              b"+OK\r\n")
        check(wrong, "seen by all", seen(), [value] * len(connections))
        c.command("CONFIG", "SET", name, "700mb", "nosuch", "1")
        check(wrong, "all or nothing", seen(), [value] * len(connections))
    c = connections[0]
    c.command("CONFIG", "SET", name, "1gb")
    pairs = decode(c.command("CONFIG", "GET", "*"))
    names = pairs[::2]
    for known in (b"save", b"appendonly", b"maxmemory", b"maxclients",
                 b"proto-max-bulk-len", b"databases", b"timeout"):
        check(wrong, f"CONFIG GET * has {known}", known in names, True)
    check(wrong, "names once", len(set(names)), len(names))
    got = decode(c.command("CONFIG", "GET", "max*", "timeout", "maxmem*"))
    check(wrong, "several patterns",
          {b"maxmemory", b"maxclients", b"timeout"} <= set(got[::2]), True)
    check(wrong, "each once", len(set(got[::2])), len(got) // 2)
    for c in connections:
        c.close()


def run(server, _opts):
    wrong = Wrong()
    for address in server.addresses:
        with Connection(address) as c:
            check_info(c, server, wrong)
            check_keyspace(c, wrong)
            check_time(c, wrong)
    with Connection(server.address) as c:
        check_commands(c, server, wrong)
    check_clients(server.addresses[1:] or server.addresses, wrong)
    check_config(server.addresses, wrong)
    server.check_alive()
    return wrong.checked, wrong
