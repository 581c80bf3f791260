#!/usr/bin/python3
"""Fails on an ambiguous name: an external function or variable, a tag of a
struct, union or enum, an enumerator or a typedef that is defined in two files
of the product.

    unique_names.py [ROOT]

Two libraries may be linked into one program, and a search for a name should
find one definition. Definitions that are replaced at link time on purpose are
in REPLACED: a simulated machine defines the functions of the real one.
"""
import collections
import json
import subprocess
import sys
from pathlib import Path

FOLDERS = ("core", "transports", "paxos", "kvs", "loadgen")
TAGS = {"struct", "union", "enum"}  # one name space in C
# NAME or FILE: why it is defined twice.
REPLACED = {
    "main": "one per program",
    "core/base/atomic_sim.h": "what atomic.h is in the explorer",
    "core/sim/bulk_copy.c": "there it stands for core/coll/large/bulk_copy.c",
    "core/sim/clock.c": "there it stands for core/base/clock.c",
    "core/sim/park.c": "there it stands for core/wait/park.c",
}


def tags(root):
    """@return what ctags finds: an iterator of dicts."""
    folders = [f for f in FOLDERS if (root / f).is_dir()]
    done = subprocess.run(
        ["ctags", "--output-format=json", "--languages=C", "--langmap=C:+.h",
         "--kinds-C=fvsuget", "--fields=*", "-R", "-f", "-", *folders],
        cwd=root, capture_output=True, text=True, check=True)
    return map(json.loads, done.stdout.splitlines())


def space(tag):
    """@return the name space of an external name; None if it is private to its
    file, or not a definition."""
    in_header = tag["path"].endswith(".h")
    prefixed = tag["name"].lower().startswith("qn_")
    if tag["kind"] in TAGS and not tag["name"].startswith("__anon"):
        return "tag" if in_header or prefixed else None
    if tag["kind"] in ("enumerator", "typedef"):
        return "name" if in_header else None
    if tag["kind"] == "variable" and in_header:
        return None  # ctags treats declarations by a function type as one
    return None if tag.get("file") else "name"


def defined(root):
    """@return {(name space, name): set of files}."""
    files = collections.defaultdict(set)
    for tag in tags(root):
        where = space(tag)
        if where and tag["path"] not in REPLACED:
            files[where, tag["name"]].add(tag["path"])
    return files


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    files = defined(root)
    if not files:
        print("ctags found no name: is this the root?")
        return 1
    twice = {k: v for k, v in files.items()
             if len(v) > 1 and k[1] not in REPLACED}
    for (where, name), paths in sorted(twice.items()):
        print("%s %s is defined in %s" % (where, name,
                                          " and ".join(sorted(paths))))
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
