#!/usr/bin/python3
"""Fails if what a member of a group links takes private memory elsewhere than
from its program's allocator (core/base/alloc.h), but for the files that
private_memory.txt lists, with a reason each.

    private_memory.py [ROOT]

Looks for calls of the C library that allocate, in sources and headers. Also
fails on a file that is listed and has no such call, and on one without a
reason.
"""
import re
import sys
from pathlib import Path

FOLDERS = ("core/base", "core/place", "core/rendezvous", "core/wait",
           "core/words", "paxos", "transports")
CALL = re.compile(
    r"\b(malloc|calloc|realloc|reallocarray|aligned_alloc|posix_memalign|"
    r"strn?dup|v?asprintf|f(?:d|re)?open|open_memstream|fmemopen|opendir|"
    r"fdopendir|scandir|getline|getdelim|glob|qsort|realpath)\s*\(")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def listed(path):
    """@return {file: reason}."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return {file.strip(): reason.strip()
            for file, _, reason in (line.partition(":") for line in lines
                                    if line and line[0] != "#")}


def callers(root):
    """@return {file: the first call in it}."""
    sources = [*(root / "core").glob("*.[ch]"),
               *(path for folder in FOLDERS
                 for path in (root / folder).rglob("*.[ch]"))]
    found = {str(path.relative_to(root)):
             CALL.search(COMMENT.sub("", path.read_text()))
             for path in sorted(sources)}
    return {file: call.group(1) for file, call in found.items() if call}


def wrong(root):
    may = listed(root / "tests/structure/private_memory.txt")
    does = callers(root)
    for file in sorted(set(does) - set(may)):
        yield f"{file} calls {does[file]}; use core/base/alloc.h"
    for file in sorted(set(may) - set(does)):
        yield f"{file} calls nothing; remove it from private_memory.txt"
    for file in sorted(f for f in may if not may[f]):
        yield f"private_memory.txt does not say why {file} may"


if __name__ == "__main__":
    errors = list(wrong(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(errors))
    sys.exit(1 if errors else 0)
