"""Transcripts: commands and the complete expected replies.

    == SET without options stores and replies OK
    > SET a 1
      +OK
    > GET nokey
    2 $-1
    3 _

`==` begins a case: an empty store and new connections. A reply line begins
with two blanks, or with `2 ` and `3 ` where the protocols differ; a line of
the reply is a line here. Each case runs in RESP2 and then in RESP3. Marks
behind `>`:

    >    one request, one reply, compared byte by byte
    >#   runs of digits (and a fraction) are compared as #
    >~   only the first line is compared, digits as #
    >*   the elements of the array in any order
    >-   a request without a reply
    >!   one reply, then the server closes the connection

A letter before `>` names another connection of the case. `?quoind` and
`?redis` before the letter restrict a request to that server. Lines that begin
with `#` are comments. `--record` fills in the replies from a redis-server.
"""

import os
import re

from wire import Closed, Connection, Hang, encode, show, split_line

REQUEST = re.compile(r"^(\?(\w+) )?([a-z]?)>([#*~!-]?) (.*)$")
HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "transcripts")


class Request:
    def __init__(self, match, number):
        self.text = match.group(0)
        self.only = match.group(2)
        self.connection = match.group(3) or "-"
        self.mark = match.group(4)
        self.args = split_line(match.group(5))
        self.number = number
        self.expected = {2: [], 3: []}


def load(path):
    """[(title, [line or Request])]; comments and blanks stay strings."""
    cases = [(None, [])]
    request = None
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            match = REQUEST.match(line)
            if line.startswith("== "):
                cases.append((line[3:], []))
            elif match:
                request = Request(match, number)
                cases[-1][1].append(request)
            elif line[:2] in ("  ", "2 ", "3 "):
                for proto in (2, 3):
                    if line[0] in (" ", str(proto)):
                        request.expected[proto].append(line[2:])
            elif line == "" or line.startswith("#"):
                cases[-1][1].append(line)
            else:
                raise ValueError(f"{path}:{number}: {line}")
    return cases


def normal(lines, mark):
    """Lines in the form compared under a mark."""
    if mark == "#":
        return [re.sub(r"\d+(\.\d+)*", "#", line) for line in lines]
    if mark == "~":
        return normal(lines[:1], "#")
    if mark == "*":
        pairs = list(zip(lines[1::2], lines[2::2]))
        return lines[:1] + [x for pair in sorted(pairs) for x in pair]
    return lines


class Case:
    """One case on one server in one protocol."""

    def __init__(self, address, proto):
        self.address = address
        self.proto = proto
        self.connections = {}

    def connection(self, name):
        if name not in self.connections:
            self.connections[name] = Connection(self.address, self.proto)
        return self.connections[name]

    def run(self, request):
        """@return the reply's lines, as compared."""
        c = self.connection(request.connection)
        c.send(encode(*request.args))
        if request.mark == "-":
            return []
        try:
            lines = normal(show(c.reply()), request.mark)
        except Closed:
            return ["(closed without a reply)"]
        except Hang as e:
            raise Hang(f"line {request.number}, port {self.address[1]}: "
                       f"{request.text[:200]}: {e}") from e
        if request.mark == "!":
            rest = c.rest()
            lines.append("(closed)" if not rest else f"(then {rest!r})")
            del self.connections[request.connection]
        return lines

    def close(self):
        for c in self.connections.values():
            c.close()


def empty(address):
    with Connection(address) as c:
        reply = c.command("FLUSHALL")
        assert reply == b"+OK\r\n", reply


def run_case(server, address, proto, items, each):
    empty(address)
    case = Case(address, proto)
    try:
        for request in items:
            if isinstance(request, Request) and request.only in (None,
                                                                 server.name):
                each(request, case.run(request))
    finally:
        case.close()


def names():
    return sorted(n for n in os.listdir(FOLDER) if n.endswith(".txt"))


def compare(server, address, name):
    """@return (requests compared, [difference])."""
    count, wrong = 0, []
    for title, items in load(os.path.join(FOLDER, name)):
        for proto in (2, 3):

            def check(request, got):
                nonlocal count
                count += 1
                expected = request.expected[proto]
                if got != expected:
                    wrong.append(
                        f"{name}:{request.number}: RESP{proto}, {title}\n"
                        f"  {request.text[:200]}\n  expected {expected}\n"
                        f"  got      {got}")

            run_case(server, address, proto, items, check)
    return count, wrong


def run(server, opts):
    """Every transcript, on every replica's own address."""
    total, wrong = 0, []
    for address in server.addresses:
        for name in names():
            if opts.only and opts.only not in name:
                continue
            count, bad = compare(server, address, name)
            total += count
            wrong += bad
    server.check_alive()
    return total, wrong


def record(server, opts):
    """Rewrites the replies with those of this server."""
    for name in names():
        if opts.only and opts.only not in name:
            continue
        path = os.path.join(FOLDER, name)
        cases = load(path)
        for _, items in cases:
            for proto in (2, 3):

                def note(request, got):
                    request.expected[proto] = got

                run_case(server, server.address, proto, items, note)
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(written(cases)) + "\n")


def written(cases):
    for title, items in cases:
        if title is not None:
            yield f"== {title}"
        for item in items:
            if not isinstance(item, Request):
                yield item
                continue
            yield item.text
            if item.expected[2] == item.expected[3]:
                yield from ("  " + line for line in item.expected[2])
            else:
                yield from ("2 " + line for line in item.expected[2])
                yield from ("3 " + line for line in item.expected[3])
