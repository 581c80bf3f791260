"""What makes verdicts.py check a source again, and what it must not remember: a
clean verdict in the wrong place hides each defect that comes later.
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


def expect(what, wanted, check=reads, told="1", flags=""):
    source = os.path.abspath("x.c")
    entry = {"directory": os.getcwd(), "file": source,
             "command": f"cc {flags} -c {source} -o x.o"}
    verdicts.content.cache_clear()
    got = verdicts.Verdicts("program", told).check([entry], check)
    if got != wanted:
        sys.exit(f"verdicts: {what}: {got}, not {wanted}")


def main():
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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CCACHE_DIR"] = os.path.join(scratch, "cache")
        os.chdir(scratch)
        main()
