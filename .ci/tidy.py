#!/usr/bin/env python3
"""clang-tidy on the sources of a build.

usage: tidy.py BUILD_FOLDER STATES

Tests are left out: they run under the sanitizers, and the analyzer takes a failed
check for a path that goes on. Where several targets share a file, the first is
enough: the others differ in what an atomic is and in seeded defects. A file costs
seconds, so what is known to be clean (verdicts.py) is left out. The analyzer
follows STATES states of a function. Exit status: 1 if there is a warning.
"""
import json
import os
import subprocess
import sys

from verdicts import Verdicts, text_of


def checker(states):
    """@return a check, as Verdicts.check has it."""
    extra = [f"--extra-arg={word}" for word in
             ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={states}")]

    def check(words, only, folder):
        read = subprocess.run(["clang-14", *words[1:], *only, "-w"], cwd=folder, check=False)
        source = words[words.index("-c") + 1]
        tidy = ["clang-tidy-14", "--quiet", source, *extra, "--", *words[1:]]
        found = subprocess.run(tidy, cwd=folder, stderr=subprocess.DEVNULL, check=False)
        return read.returncode or found.returncode

    return check


def main(folder, states):
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    sources = {}
    for e in entries:
        if not os.path.relpath(e["file"]).startswith("tests/"):
            sources.setdefault(e["file"], e)
    with open(".clang-tidy", encoding="utf-8") as f:
        told = f.read() + str(states)
    verdicts = Verdicts(__file__, text_of("clang-tidy-14", "--version") + told)
    checked, known, failed = verdicts.check(sources.values(), checker(states))
    print(f"tidy: {checked} files, {known} known to be clean, {failed} with defects")
    return 1 if failed or not sources else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
