#!/usr/bin/env python3
"""Warnings of a compiler for the sources that a build folder has no object of.

usage: warnings.py BUILD_FOLDER

Each is compiled up to its meaning only, with the flags of the first target that
has it: no code is made, which is most of the time. Exit status: 1 if one of them
has an error or, where warnings are errors, a warning.
"""
import concurrent.futures
import json
import os
import shlex
import subprocess
import sys


def check(entry):
    words = shlex.split(entry["command"])
    at = words.index("-o")
    del words[at:at + 2]
    return subprocess.run(words + ["-fsyntax-only"], cwd=entry["directory"], check=False).returncode


def main(folder):
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    built, left = set(), {}
    for e in entries:
        words = shlex.split(e["command"])
        if os.path.exists(os.path.join(e["directory"], words[words.index("-o") + 1])):
            built.add(e["file"])
        left.setdefault(e["file"], e)
    todo = [e for file, e in left.items() if file not in built]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = sum(code != 0 for code in pool.map(check, todo))
    print(f"warnings: {len(todo)} files, {failed} with errors")
    return 1 if failed or not todo else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
