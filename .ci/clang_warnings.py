#!/usr/bin/env python3
"""Warnings of a compiler for the sources that a build folder has no object of.

usage: clang_warnings.py BUILD_FOLDER

Each is compiled up to its meaning only, with the flags of the first target that
has it: no code is made, which is most of the time. What is known to be clean
(verdicts.py) is left out. Exit status: 1 if one of them has an error or, where
warnings are errors, a warning.
"""
import json
import os
import subprocess
import sys

from verdicts import Verdicts, text_of, words_of


def check(words, only, folder):
    return subprocess.run(words + only, cwd=folder, check=False).returncode


def main(folder):
    with open(os.path.join(folder, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    built, left = set(), {}
    for e in entries:
        if os.path.exists(words_of(e)[1]):
            built.add(e["file"])
        left.setdefault(e["file"], e)
    todo = [e for file, e in left.items() if file not in built]
    verdicts = Verdicts(__file__, text_of(words_of(entries[0])[0][0], "--version"))
    checked, known, failed = verdicts.check(todo, check)
    print(f"warnings: {checked} files, {known} known to be clean, {failed} with errors")
    return 1 if failed or not todo else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
