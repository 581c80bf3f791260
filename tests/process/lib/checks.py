"""Shared by the tests of whole servers: checks, and a runner of functions.

"Waits" is never measured by the clock: `turns` lets a replica run a given
number of loop iterations, in each of which it would have answered.
"""
import ast
import json
import linecache
import os
import sys
import textwrap
import threading
import time
import traceback

from tests.process.lib.quoind import DEADLINE


def check(what, got, want):
    assert got == want, "%s: got %r, want %r" % (what, got, want)


def wait_until(what, true):
    """Asks again until `true()` holds."""
    deadline = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < deadline, \
            "never in %g s: %s" % (DEADLINE, what)
        time.sleep(0.001)


def turns(q, replicas, count=300):
    """Each of these replicas runs at least `count` loop iterations,
    alternating, so that messages of one meet those of the other."""
    clients = [q.client(i) for i in replicas]
    for _ in range(count):
        for c in clients:
            check("ping", c.call("PING"), b"PONG")
    for c in clients:
        c.close()


def waits(what, clients, q, replicas):
    """None of these connections receives a byte while the replicas run."""
    turns(q, replicas)
    for c in clients:
        assert c.silent(), "answered: " + what


def digests(q, replicas=None):
    """The digest of each replica, once all are at one position."""
    clients = [q.client(i) for i in
               (range(q.replicas) if replicas is None else replicas)]
    deadline = time.monotonic() + DEADLINE
    while True:
        all_ = [c.call("DEBUG", "DIGEST").split() for c in clients]
        if len({position for position, _ in all_}) == 1:
            break
        assert time.monotonic() < deadline, "no common position: %r" % all_
        time.sleep(0.005)
    for c in clients:
        c.close()
    return [digest for _, digest in all_]


def agree(q, replicas=None):
    """Equal digests at equal positions."""
    check("digests", len(set(digests(q, replicas))), 1)


def lands_on(q, replica):
    """True if a new connection to the common address reaches that replica."""
    try:
        c = q.client()
        there = c.call("CLIENT", "ID") % 64 == replica
        c.close()
        return there
    except OSError:  # it was killed meanwhile
        return False


def shares(q):
    """Each replica gets connections from the common address."""
    for i in range(q.replicas):
        wait_until("a share of replica %d" % i, lambda: lands_on(q, i))


class Background(threading.Thread):
    """Runs a function in a thread; leaving the block waits for its end and
    raises its exception."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.call = function, args
        self.error = None

    def run(self):
        try:
            self.call[0](*self.call[1])
        except BaseException as e:  # raised again by finish()
            self.error = e

    def finish(self):
        self.join()
        if self.error is not None:
            raise self.error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.finish()
        return False


def add_up(path, found):
    """Results of a long run in pieces: numbers are added to those in the file,
    the longest and the least of both are kept, lists are joined.

    @return the sum, as it is in the file now.
    """
    try:
        with open(path) as f:
            total = json.load(f)
    except FileNotFoundError:
        total = {}
    for name, value in found.items():
        if name not in total:
            total[name] = value
        elif name.startswith("longest"):
            total[name] = max(total[name], value)
        elif name.startswith("least"):
            total[name] = min(total[name], value)
        else:
            total[name] += value
    with open(path, "w") as f:
        json.dump(total, f, indent=1)
    return total


def statement(call):
    """That of a FrameSummary, parsed, with all of its lines; None if they are
    none by themselves, as of a condition."""
    lines = range(call.lineno, (call.end_lineno or call.lineno) + 1)
    text = "".join(linecache.getline(call.filename, n) for n in lines)
    try:
        return ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return None


def values_in(tree, frame):
    """What a statement names, with the values that its frame has now; calls
    are not made again. Names are looked up as deep as they go: `a`, `a.b`,
    `a["b"]`."""
    nodes = list(ast.walk(tree))
    inner = set()  # a part of a longer name, or a name that is called
    for node in nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            inner.add(id(node.value))
        if isinstance(node, ast.Call):
            inner.update(id(n) for n in ast.walk(node.func))
    seen = {}
    for node in nodes:
        if id(node) in inner or \
                not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or \
                any(isinstance(n, ast.Call) for n in ast.walk(node)):
            continue
        name = ast.unparse(node)
        try:
            seen[name] = repr(eval(name, frame.f_globals, frame.f_locals))
        except Exception:  # of a comprehension, and gone
            continue
    return ", ".join("%s is %s" % (n, v[:200]) for n, v in seen.items())


def failure(error):
    """One line of what was expected and seen, and where. An assertion without
    a text is shown in one line, with the values in it."""
    calls = traceback.extract_tb(error.__traceback__)
    calls = calls[1:] or calls  # without `main`, which calls no such test
    last = calls[-1]
    where = " > ".join(dict.fromkeys(  # of a test, and of what it called
        "%s:%d" % (os.path.basename(c.filename), c.lineno)
        for c in (calls[0], last)))
    kind = type(error).__name__
    if isinstance(error, SystemExit):
        return "%s: %s: expected to return, ended with status %r" % (
            where, kind, error.code)
    if str(error):
        return "%s: %s: %s" % (where, kind, error)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        pass  # to the last one
    tree = statement(last)
    values = values_in(tree, frame) if tree else ""
    return "%s: %s: expected: %s%s" % (
        where, kind, ast.unparse(tree) if tree else last.line,
        "; seen: " + values if values else "")


def main(names, all_):
    """Runs the functions test_* of `all_`, or those named; status 1 if one
    failed, or ended the program."""
    names = names or [n for n in all_ if n.startswith("test_")]
    failed = 0
    for name in names:
        started = time.monotonic()
        try:
            note = all_[name]()
            result = "ok" + (": " + note if note else "")
        except (Exception, SystemExit) as e:  # continue with the others
            failed += 1
            result = "FAILED: " + failure(e)
        print("%-58s %6.1f s  %s" % (name, time.monotonic() - started,
                                     result), flush=True)
    print("%d passed, %d failed" % (len(names) - failed, failed))
    sys.exit(failed != 0)
