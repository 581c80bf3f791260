#!/usr/bin/python3
"""Fails if a folder includes one that layers.txt does not list for it.

    layers.py [ROOT]              check
    layers.py --write [ROOT]      print the table as the includes are now

Also fails on a folder of sources that is not listed, on one that is listed but
empty, on a listed arrow that is not used, on a cycle of includes between
folders, on a header *_internal.h that another folder includes, on a folder of
more than 25 sources, and on a CMakeLists.txt that names the top folder of the
program that adds this tree to its own (docs/embedding.md); tests and examples
are built here only.
"""
import collections
import re
import sys
from pathlib import Path

TOPS = ("core", "transports", "paxos", "kvs", "loadgen")
SOURCES_MAX = 25
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.M)


def sources(root, tops, endings):
    """@return {folder: [path]}, both as text below the root."""
    found = collections.defaultdict(list)
    for top in tops:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in endings and path.is_file():
                name = path.relative_to(root)
                found[str(name.parent)].append(str(name))
    return found


def arrows(root, found):
    """@return {folder: {folder it includes: [(file, header)]}}."""
    used = collections.defaultdict(lambda: collections.defaultdict(list))
    for folder, files in found.items():
        for name in files:
            for header in INCLUDE.findall((root / name).read_text()):
                to = header.rpartition("/")[0]
                if to != folder:
                    used[folder][to].append((name, header))
    return used


def table(path):
    """@return {folder: set of folders}, from lines `folder: folder folder`."""
    listed = {}
    for line in path.read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line:
            folder, _, rest = line.partition(":")
            listed[folder] = set(rest.split())
    return listed


def circle(listed):
    """@return folders whose includes form a cycle, or []."""
    done, path = set(), []

    def visit(folder):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return []
        path.append(folder)
        for to in sorted(listed.get(folder, ())):
            found = visit(to)
            if found:
                return found
        path.pop()
        done.add(folder)
        return []

    for folder in sorted(listed):
        found = visit(folder)
        if found:
            return found
    return []


def outer(root):
    """@return lists of the build that name the outer project's folder."""
    lists = [root / "CMakeLists.txt",
             *(path for top in (*TOPS, "docs")
               for path in sorted((root / top).rglob("CMakeLists.txt")))]
    return [path.relative_to(root) for path in lists if path.exists() and
            re.search("CMAKE_(SOURCE|BINARY)_DIR", path.read_text())]


def wrong(root):
    """@return the violations, one line each."""
    for path in outer(root):
        yield "%s names the outer project's folder; take PROJECT_*_DIR" % path
    found = sources(root, TOPS, (".c", ".h"))
    used = arrows(root, found)
    listed = table(root / "tests/structure/layers.txt")
    for folder in sorted(set(found) - set(listed)):
        yield "%s is not in layers.txt; add a line, and a README" % folder
    for folder in sorted(set(listed) - set(found)):
        yield "%s is in layers.txt but has no sources; remove it" % folder
    for folder in sorted(found):
        for to, at in sorted(used[folder].items()):
            if to not in listed.get(folder, {to}):
                yield "wrong arrow: %s includes %s; %s may not include %s" % (
                    *at[0], folder, to or "the root")
            for name, header in at:
                if header.endswith("_internal.h"):
                    yield "%s includes %s, which is private to its folder" % (
                        name, header)
        for to in sorted(listed.get(folder, set()) - set(used[folder])):
            yield "%s does not include %s; remove it from layers.txt" % (
                folder, to)
    round_ = circle(listed)
    if round_:
        yield "cyclic includes: " + " -> ".join(round_)
    all_ = sources(root, (*TOPS, "tests"), (".c", ".h", ".py", ".sh"))
    for folder, files in sorted(all_.items()):
        if len(files) > SOURCES_MAX:
            yield "%s has %d sources, more than %d; divide it" % (
                folder, len(files), SOURCES_MAX)


def main():
    words = [w for w in sys.argv[1:] if w != "--write"]
    root = Path(words[0] if words else ".")
    if "--write" in sys.argv:
        used = arrows(root, sources(root, TOPS, (".c", ".h")))
        for folder in sorted(sources(root, TOPS, (".c", ".h"))):
            print("%s: %s" % (folder, " ".join(sorted(used[folder]))))
        return 0
    found = list(wrong(root))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
