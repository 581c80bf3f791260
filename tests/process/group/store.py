"""Processes of examples/store.c, and their pipes: one thread, nothing waits.

    w = World(program, members)
    w.start(i)                       a process; w.kill(i), w.stop(i), w.go_on(i)
    w.member[i].ask("get k1", done)  done(answer), or done(None): it has ended
    w.turn(seconds)                  what has come is told, timers included
"""
import heapq
import itertools
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time

MIB = 1 << 20


class Member:
    """One process, from its start to its end."""

    def __init__(self, world, index, command):
        self.world, self.index = world, index
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE,
                                        stderr=world.errors, bufsize=0)
        self.to, self.by = self.process.stdin, self.process.stdout
        os.set_blocking(self.to.fileno(), False)
        os.set_blocking(self.by.fileno(), False)
        self.unsent, self.part = bytearray(), bytearray()
        self.tags, self.asked = itertools.count(), {}
        self.stopped = self.ended = self.writes = False
        self.anonymous = self.shared = 0  # bytes, at most
        world.selector.register(self.by, selectors.EVENT_READ, self.hear)

    def ask(self, line, done):
        if self.ended:
            self.world.after(0, lambda: done(None))
            return
        tag = str(next(self.tags))
        self.asked[tag] = done
        self.unsent += ("%s %s\n" % (tag, line)).encode()
        self.send()

    def send(self):
        try:
            while self.unsent:
                del self.unsent[:os.write(self.to.fileno(), self.unsent)]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # `hear` will see its end
            self.unsent.clear()
        if bool(self.unsent) != self.writes:
            self.writes = not self.writes
            if self.writes:
                self.world.selector.register(self.to, selectors.EVENT_WRITE,
                                             self.send)
            else:
                self.world.selector.unregister(self.to)

    def hear(self):
        try:
            got = os.read(self.by.fileno(), MIB)
        except BlockingIOError:
            return
        if not got:
            self.end()
            return
        *lines, rest = got.split(b"\n")
        for line in lines:
            self.part += line
            tag, _, answer = self.part.decode().partition(" ")
            self.part.clear()
            self.asked.pop(tag)(answer)
        self.part += rest

    def end(self):
        """It has ended: what it was asked has no answer."""
        self.ended = True
        self.unsent.clear()
        self.send()
        self.world.selector.unregister(self.by)
        self.process.wait()
        self.to.close()
        self.by.close()
        asked, self.asked = self.asked, {}
        for done in asked.values():
            done(None)

    def weigh(self):
        """Notes the memory that it has now."""
        try:
            with open("/proc/%d/status" % self.process.pid) as f:
                kib = dict(line.split()[:2] for line in f if line[:3] == "Rss")
        except OSError:
            return
        if kib:
            self.anonymous = max(self.anonymous, int(kib["RssAnon:"]) << 10)
            self.shared = max(self.shared, int(kib["RssShmem:"]) << 10)


class World:
    def __init__(self, program, members, log_mib=4):
        self.folder = tempfile.mkdtemp(prefix="quoin-store-")
        self.command = [program, self.folder + "/name", str(members),
                        str(log_mib)]
        self.errors = None  # where members say what is wrong
        self.selector = selectors.DefaultSelector()
        self.timers, self.order = [], itertools.count()
        self.member, self.past = {}, []

    def after(self, seconds, call):
        heapq.heappush(self.timers, (time.monotonic() + seconds,
                                     next(self.order), call))

    def turn(self, seconds):
        """Waits at most that long for something."""
        if self.timers:
            seconds = min(seconds, self.timers[0][0] - time.monotonic())
        for key, _ in self.selector.select(max(0, seconds)):
            if not key.fileobj.closed:  # by an earlier one
                key.data()
        while self.timers and self.timers[0][0] <= time.monotonic():
            heapq.heappop(self.timers)[2]()

    def until(self, what, true, seconds):
        """Turns until it holds; AssertionError, if that takes too long."""
        deadline = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < deadline, "not in %d s: %s" % (
                seconds, what() if callable(what) else what)
            self.turn(0.05)

    def answers(self, line, seconds, members):
        """What each of them says; it turns meanwhile."""
        got = {}
        for m in members:
            m.ask(line, lambda answer, i=m.index: got.update({i: answer}))
        self.until(lambda: "%s: only %s answer" % (line, sorted(got)),
                   lambda: len(got) == len(members), seconds)
        return got

    def command_of(self, i):
        """What starts member i."""
        return self.command

    def start(self, i):
        self.member[i] = Member(self, i, self.command_of(i))
        self.past.append(self.member[i])

    def signal(self, i, number):
        self.member[i].process.send_signal(number)

    def kill(self, i):
        self.signal(i, signal.SIGKILL)

    def stop(self, i):
        self.member[i].stopped = True
        self.signal(i, signal.SIGSTOP)

    def go_on(self, i):
        self.member[i].stopped = False
        self.signal(i, signal.SIGCONT)

    def close(self):
        for m in self.member.values():
            if not m.ended:
                m.process.kill()
                m.end()
        self.selector.close()
        shutil.rmtree(self.folder)


def fields(answer):
    """"serving seat 0 leader 2 ..." as a dictionary of numbers, with the first
    word as "phase"; or "applied 12 digest 9f" with texts."""
    words = answer.split()
    phase = [words.pop(0)] if len(words) % 2 else [None]
    return {"phase": phase[0],
            **{k: int(v) if v.isdigit() and k != "digest" else v
               for k, v in zip(words[::2], words[1::2])}}
