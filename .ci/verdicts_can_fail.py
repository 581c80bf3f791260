"""What makes verdicts.py check a source again, and what it must not remember: a
clean verdict in the wrong place hides each defect that comes later. And which it
forgets when it keeps too many.
"""
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import verdicts  # noqa: E402

CLEAN, KNOWN, FAILED = [1, 0, 0], [0, 1, 0], [0, 0, 1]


def put(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def reads(words, only, folder):
    return subprocess.run(words + only, cwd=folder, stderr=subprocess.DEVNULL,
                          check=False).returncode


def changes(words, only, folder):
    begun = time.time()
    status = reads(words, only, folder)
    put("x.h", "int b = a;\n")
    while os.path.getctime("x.h") < begun:  # it goes by the ticks of the kernel
        put("x.h", "int b = a;\n")
    return status


def tells_nothing(words, only, folder):
    return reads(words, only[:1], folder)


def an_hour_passes(folder):
    for kept in os.scandir(folder):
        then = kept.stat().st_mtime - 3600
        os.utime(kept.path, (then, then))


def expect(what, wanted, check=reads, told="1", flags=""):
    source = os.path.abspath("x.c")
    entry = {"directory": os.getcwd(), "file": source,
             "command": f"cc {flags} -c {source} -o x.o"}
    verdicts.content.cache_clear()
    got = verdicts.Verdicts("program", told).check([entry], check)
    if got != wanted:
        sys.exit(f"verdicts: {what}: {got}, not {wanted}")


def expect_the_oldest_use_to_be_forgotten(folder):
    verdicts.KEPT_FILES = 4  # of two sources
    for what, wanted, flags in (("the first", CLEAN, "-DA"), ("the second", CLEAN, "-DB"),
                                ("the first, used", KNOWN, "-DA"),
                                ("one too many", CLEAN, "-DC"),
                                ("the first, kept", KNOWN, "-DA"),
                                ("the newest, kept", KNOWN, "-DC"),
                                ("the second, forgotten", CLEAN, "-DB")):
        expect(what, wanted, flags=flags)
        if len(os.listdir(folder)) > verdicts.KEPT_FILES:
            sys.exit(f"verdicts: {what}: {len(os.listdir(folder))} files are kept")
        an_hour_passes(folder)


def main(folder):
    put("x.c", '#include "x.h"\n')
    put("x.h", "int a;\n")
    put("program", "")
    expect("a rule without the source is taken", CLEAN, tells_nothing)
    expect("after it", CLEAN)
    expect("the same bytes", KNOWN)
    expect("another checker", CLEAN, told="2")
    expect("another flag", CLEAN, flags="-DX")
    expect("a header that changes meanwhile", CLEAN, changes, told="3")
    expect("what it has become", FAILED, told="3")
    expect("a defect is not remembered", FAILED, told="3")
    put("x.h", "int a;\n")
    expect("as it was", KNOWN)
    put("program", "-Wall")
    expect("another program that checks", CLEAN)
    an_hour_passes(folder)
    expect_the_oldest_use_to_be_forgotten(folder)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CCACHE_DIR"] = os.path.join(scratch, "cache")
        os.chdir(scratch)
        main(os.path.join(scratch, "cache", "verdicts"))
