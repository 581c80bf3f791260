"""examples/store.c does what its first comment says.

    test_store.py STORE
"""
import sys

from tests.process.group.load import value_of
from tests.process.group.store import World, fields
from tests.process.lib.checks import check

PATIENCE = 60
SEATS = 3


class Store:
    def __init__(self, program):
        self.world = World(program, SEATS, log_mib=1)
        for i in range(SEATS):
            self.world.start(i)
        self.wait_until_all_serve()

    def wait_until_all_serve(self):
        for i in range(SEATS):
            self.world.until("member %d serves" % i, lambda i=i: fields(
                self.ask(i, "status"))["phase"] == "serving", PATIENCE)

    def ask(self, i, line):
        return self.world.answers(line, PATIENCE, [self.world.member[i]])[i]


def answers(s):
    check("absent", s.ask(0, "get color"), "none")
    check("set", s.ask(0, "set color dark blue"), "ok")
    for i in range(SEATS):
        check("get at %d" % i, s.ask(i, "get color"), "is dark blue")
    check("incr", s.ask(1, "incr visits 5"), "ok 5")
    check("incr", s.ask(2, "incr visits -7"), "ok -2")
    check("get", s.ask(0, "get visits"), "is -2")
    check("del", s.ask(0, "del color"), "ok 1")
    check("del", s.ask(1, "del color"), "ok 0")
    check("get", s.ask(2, "get color"), "none")
    check("nonsense", s.ask(2, "paint color").partition(" ")[0], "refused:")
    check("members", fields(s.ask(1, "status"))["members"], 7)


def returns(s):
    """A killed process comes back with all, in one part or in many: more was
    written than the log keeps."""
    for i in range(100):
        check("set", s.ask(i % SEATS, "set k0 " + value_of(i, 64 << 10)), "ok")
    values = [value_of(i, 16 << i) for i in range(13)]  # 16 B to 64 KiB
    for i, value in enumerate(values):
        check("set", s.ask(i % SEATS, "set k%d %s" % (i, value)), "ok")
    member = s.world.member[1]
    s.world.kill(1)
    s.world.until("its end", lambda: member.ended, PATIENCE)
    s.world.start(1)
    s.wait_until_all_serve()
    check("snapshots", fields(s.ask(1, "status"))["installed"], 1)
    for i, value in enumerate(values):
        check("get", s.ask(1, "get k%d" % i), "is " + value)
    check("states", len({fields(s.ask(i, "digest"))["digest"]
                         for i in range(SEATS)}), 1)


def ends(s):
    """At the end of its input a process leaves, and the others go on."""
    member = s.world.member[0]
    member.to.close()
    s.world.until("its end", lambda: member.ended, PATIENCE)
    check("status", member.process.returncode, 0)
    check("set", s.ask(1, "set k0 1"), "ok")
    check("get", s.ask(2, "get k0"), "is 1")


def main():
    s = Store(sys.argv[1])
    try:
        answers(s)
        returns(s)
        ends(s)
    finally:
        s.world.close()
    print("all well")


if __name__ == "__main__":
    main()
