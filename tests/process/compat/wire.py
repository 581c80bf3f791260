"""Bytes to and from a RESP server: compared bytes are never decoded."""

import hashlib
import socket

TIMEOUT_S = 30  # a server without a reply for this time hangs


class Closed(Exception):
    """The server closed the connection."""


class Hang(Exception):
    """The server did not answer."""


def encode(*args):
    """A request as an array of bulk strings."""
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        arg = to_bytes(arg)
        out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(out)


def to_bytes(arg):
    if isinstance(arg, bytes):
        return arg
    return str(arg).encode()


class Connection:
    """One connection; replies are returned as raw bytes."""

    def __init__(self, address, proto=2):
        self.socket = socket.create_connection(address, TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = bytearray()
        self.at = 0
        self.trace = bytearray()  # all bytes received
        if proto == 3:
            self.command("HELLO", "3")

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as e:
            raise Closed from e

    def command(self, *args):
        self.send(encode(*args))
        return self.reply()

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def _receive(self):
        try:
            data = self.socket.recv(1 << 20)
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        except socket.timeout as e:
            raise Hang(f"no answer within {TIMEOUT_S} s") from e
        if not data:
            raise Closed
        self.input += data
        self.trace += data

    def _line(self, at):
        """Index behind the CRLF of the line that begins at `at`."""
        start = at
        while True:
            end = self.input.find(b"\r\n", start)
            if end >= 0:
                return end + 2
            start = max(at, len(self.input) - 1)
            self._receive()

    def _element(self, at):
        """Index behind the reply element that begins at `at`."""
        left = 1
        while left:
            left -= 1
            end = self._line(at)
            kind = self.input[at:at + 1]
            if kind in b"$=!" and self.input[at + 1:at + 3] != b"-1":
                end += int(self.input[at + 1:end - 2]) + 2
                while len(self.input) < end:
                    self._receive()
            elif kind in b"*~>" and self.input[at + 1:at + 3] != b"-1":
                left += int(self.input[at + 1:end - 2])
            elif kind in b"%":
                left += 2 * int(self.input[at + 1:end - 2])
            elif kind not in b"+-:_,#($*":
                raise ValueError(f"not a reply: {bytes(self.input[at:at + 40])}")
            at = end
        return at

    def reply(self):
        """The complete bytes of the next reply."""
        end = self._element(self.at)
        raw = bytes(self.input[self.at:end])
        self.at = end
        if self.at == len(self.input):
            self.input.clear()
            self.at = 0
        return raw

    def rest(self):
        """All bytes until the server closes the connection."""
        try:
            while True:
                self._receive()
        except Closed:
            raw = bytes(self.input[self.at:])
            self.input.clear()
            self.at = 0
            return raw

    def expect_closed(self):
        raw = self.rest()
        if raw:
            raise AssertionError(f"expected the end, got {raw[:200]}")


def decode(raw):
    """A reply as Python values: for the few replies that cannot be compared
    byte by byte. Maps become lists of pairs."""
    value, at = _decode(raw, 0)
    assert at == len(raw), "more than one reply"
    return value


def _decode(raw, at):
    end = raw.index(b"\r\n", at)
    kind, head = raw[at:at + 1], raw[at + 1:end]
    at = end + 2
    if kind == b"+":
        return head, at
    if kind == b"-":
        return AssertionError(head.decode(errors="replace")), at
    if kind == b":":
        return int(head), at
    if kind == b"_" or head == b"-1":
        return None, at
    n = int(head)
    if kind == b"$":
        return raw[at:at + n], at + n + 2
    if kind == b"=":
        return raw[at + 4:at + n], at + n + 2
    items = []
    for _ in range(2 * n if kind == b"%" else n):
        item, at = _decode(raw, at)
        items.append(item)
    if kind == b"%":
        return list(zip(items[::2], items[1::2])), at
    return items, at


LONG = 400


def show(raw):
    """Bytes as lines of text: one to one, except that long lines are shown by
    their length and digest."""
    lines = []
    for line in (raw[:-2] if raw.endswith(b"\r\n") else raw).split(b"\r\n"):
        if len(line) > LONG:
            digest = hashlib.sha1(line).hexdigest()[:16]
            lines.append(f"({len(line)} bytes, sha1 {digest})")
        else:
            lines.append("".join(escape(c) for c in line))
    if not raw.endswith(b"\r\n"):
        lines.append("(no CRLF)")
    return lines


def escape(c):
    if c == 0x5c:
        return "\\\\"
    if c == 0x0a:
        return "\\n"
    if c == 0x0d:
        return "\\r"
    return chr(c) if 0x20 <= c < 0x7f else f"\\x{c:02x}"


def split_line(text):
    """Arguments of a line, quoted as in redis-cli; {x*100} repeats."""
    args, i, n = [], 0, len(text)
    while True:
        while i < n and text[i] == " ":
            i += 1
        if i == n:
            return args
        arg = bytearray()
        if text[i] == "{" and "}" in text[i:]:
            end = text.index("}", i)
            unit, count = text[i + 1:end].rsplit("*", 1)
            arg += unit.encode() * int(count)
            i = end + 1
        elif text[i] == '"':
            i += 1
            while text[i] != '"':
                if text[i] == "\\":
                    c = text[i + 1]
                    if c == "x":
                        arg.append(int(text[i + 2:i + 4], 16))
                        i += 4
                        continue
                    arg += {"n": b"\n", "r": b"\r", "t": b"\t"}.get(c, c.encode())
                    i += 2
                else:
                    arg += text[i].encode()
                    i += 1
            i += 1
        else:
            while i < n and text[i] != " ":
                arg += text[i].encode()
                i += 1
        args.append(bytes(arg))
