"""Connections: whom they wait for, what they may hold, how many there may be.

Usage: test_conns.py QUOIND QUOIN [NAME...]
"""
import os
import signal
import sys

from checks import agree, check, main, turns, wait_until
from quoind import DEADLINE, Quoind
from view import look

PATH = sys.argv[1]


def fill(q, c, replica, command):
    """Send copies of it until the server takes no more. @return how many whole
    ones were sent, and bytes of a further one."""
    sent = 0
    data = memoryview(command * 64)
    c.sock.setblocking(False)
    while True:
        try:
            sent += c.sock.send(data[sent % len(command):])
        except BlockingIOError:
            before = sent
            turns(q, [replica])
            try:
                sent += c.sock.send(data[sent % len(command):])
            except BlockingIOError:
                pass
            if sent == before:
                break
    c.sock.settimeout(DEADLINE)
    return divmod(sent, len(command))


def test_reads_go_on_while_writes_wait():
    """Two of three stand still, and the queue of writes is full: whoever has
    no write there is answered, and nobody before an earlier write of its
    own."""
    with Quoind(PATH, args=["--acceptor", "process"]) as q:
        v = look(q, [0])
        others = {v.leader, v.acceptor}
        left = ({0, 1, 2} - others).pop()
        pids = q.pids()
        writers = [q.client(left) for _ in range(4)]
        q.client(left).call("SET", "k", "v")
        for i in others:
            os.kill(pids[i], signal.SIGSTOP)
        command = writers[0].encode("APPEND", "n", "x" * 60000)
        sent = [fill(q, c, left, command) for c in writers]
        reader = q.client(left)
        check("new", reader.pipeline(("PING",), ("GET", "k"), ("GET", "n")),
              [b"PONG", b"v", None])
        check("info", b"# Quoin" in reader.call("INFO", "quoin"), True)
        last = q.client(left)
        last.send(last.encode("APPEND", "m", "y") + last.encode("GET", "m") +
                  last.encode("PING"))
        turns(q, [left])
        for c in [*writers, last]:
            assert c.silent(), "answered before its write"
        for i in others:
            os.kill(pids[i], signal.SIGCONT)
        check("last", [last.reply() for _ in range(3)], [1, b"y", b"PONG"])
        lengths = []
        for c, (whole, part) in zip(writers, sent):
            if part:
                c.send(command[part:])
                whole += 1
            lengths += [c.reply() for _ in range(whole)]
        check("lengths", sorted(lengths),
              [60000 * (i + 1) for i in range(len(lengths))])
        agree(q)
    return "%d writes waited" % len(lengths)


main(sys.argv[3:], globals())
