#!/usr/bin/python3
"""Fails if kvs includes more of core/place and paxos than it may: the member
layer (paxos/member and its folders), paxos/wire, and the headers that
kvs_headers.txt lists, with a reason each.

    kvs_headers.py [ROOT]

Also fails on a header that is listed and not included, on one without a
reason, and on more than ten of them.
"""
import re
import sys
from pathlib import Path

MOST = 10
INCLUDE = re.compile(r'^\s*#\s*include "((?:core/place|paxos)/[^"]+)"', re.M)
FREE = ("paxos/member/", "paxos/wire/")


def listed(path):
    """@return {header: reason}."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return {header.strip(): reason.strip()
            for header, _, reason in (line.partition(":") for line in lines
                                      if line and line[0] != "#")}


def included(root):
    """@return {header: a file of kvs that includes it}."""
    return {header: path.relative_to(root)
            for path in sorted((root / "kvs").rglob("*.[ch]"))
            for header in INCLUDE.findall(path.read_text())
            if not header.startswith(FREE)}


def wrong(root):
    may = listed(root / "tests/structure/kvs_headers.txt")
    does = included(root)
    for header in sorted(set(does) - set(may)):
        yield f"{does[header]} includes {header}; use paxos/member"
    for header in sorted(set(may) - set(does)):
        yield f"no file of kvs includes {header}; remove it from kvs_headers.txt"
    for header in sorted(h for h in may if not may[h]):
        yield f"kvs_headers.txt does not say why kvs includes {header}"
    if len(may) > MOST:
        yield f"kvs_headers.txt lists {len(may)} headers, more than {MOST}"


if __name__ == "__main__":
    found = list(wrong(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found))
    sys.exit(1 if found else 0)
