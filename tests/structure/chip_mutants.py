"""Each invalidate and each drain of code on message buffers is a mutant.

A look without an invalidate, and a flag without a drain, is right on a coherent
machine and wrong on the hardware. transports/mpb/mutant.h names each of them,
and a test takes each out and finds that within 100 seeds. Here: there is none
without a name, no two share one, and each name has such a test.

Usage: chip_mutants.py [root]
"""

import pathlib
import re
import sys

CALL = re.compile(r"\b(?:qn_mpb_|access->)(?:invalidate|drain)\s*\(")
NAME = re.compile(r"QN_MPB_MUTANT\((\w+)\)")
ENTRY = re.compile(r"X\(([A-Z]\w+), ([A-Z]+),")
SEARCH = re.compile(r"mpb_find_all\((\w+),")
EMULATION = {"chip.c", "chip.h", "strict.c"}  # what the calls reach
ABOVE = 3  # lines in which the condition of a call is looked for


def sites(folder):
    """Where a call is, and the mutants that take it out."""
    for path in sorted(folder.rglob("*.[ch]")):
        lines = path.read_text().splitlines()
        for i, line in enumerate(lines):
            if path.name not in EMULATION and CALL.search(line):
                above = "\n".join(lines[max(0, i - ABOVE):i])
                yield f"{path}:{i + 1}", frozenset(NAME.findall(above))


def main(root):
    folder = root / "transports" / "mpb"
    wrong = []
    entries = dict(ENTRY.findall((folder / "mutant.h").read_text()))
    tests = root / "tests" / "unit" / "transports" / "mpb"
    searched = {f for path in tests.rglob("*.c")
                for f in SEARCH.findall(path.read_text())}
    seen = {}
    for where, names in sites(folder):
        if not names:
            wrong.append(f"{where}: an invalidate or a drain without a mutant")
        for name in sorted(names):
            if name in seen:
                wrong.append(f"{where}: {name} is that of {seen[name]}")
            seen[name] = where
            if entries.get(name) not in searched:
                wrong.append(f"{where}: no search of 100 seeds finds {name}")
    sources = "".join(p.read_text() for p in folder.rglob("*.c"))
    for name in sorted(set(entries) - set(NAME.findall(sources))):
        wrong.append(f"{folder / 'mutant.h'}: {name} is nowhere")
    if len(seen) < 10:
        wrong.append(f"only {len(seen)} calls were found")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
