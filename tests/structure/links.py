#!/usr/bin/python3
"""Fails on what is named and is not there: the target of a relative link in a
Markdown file, a file that Markdown or a comment of the sources names from the
root (`kvs/store/store.h`), a function that Markdown says is in a file
(`kvs/store/store.c: qn_store_get`).

    links.py [ROOT]
"""
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```.*?^```|    [^\n]*$)|`[^`\n]*`", re.M | re.S)
FILE = (r"(?:core|transports|paxos|kvs|loadgen|tests|docs)/"
        r"[\w/-]+\.(?:[ch]|py|sh|md|pml)\b")
NAMED = re.compile(rf"(?<![\w/.-])({FILE})")
# `file: function`, and more functions of the same file behind it.
FUNCTIONS = re.compile(rf"`({FILE}): (\w+)`((?:,? (?:and )?`\w+`)*)")
# Paths there are of another folder, or of a tree that a test makes.
ELSEWHERE = re.compile(r"CMakeLists\.txt$|_can_fail\.sh$|questions\.md$|"
                       r"measurements\.md$")
SOURCES = ("*.md", "*.c", "*.h", "*.py", "*.sh", "*.pml")


def files(root):
    """The files of git, or all files without git."""
    done = subprocess.run(["git", "ls-files", "--", *SOURCES], cwd=root,
                          capture_output=True, text=True)
    found = [root / name for name in done.stdout.splitlines()]
    if not found:
        found = [path for kind in SOURCES for path in root.rglob(kind)]
    return sorted(path for path in found if path.exists())


def missing_links(page, text):
    for link in LINK.findall(CODE.sub("", text)):
        path = link.partition("#")[0]
        if path and ":" not in path and not (page.parent / path).exists():
            yield f"the target of the link {link}"


def missing_files(root, text):
    for name in sorted(set(NAMED.findall(text))):
        if not (root / name).exists():
            yield name


def missing_functions(root, text):
    for name, first, more in FUNCTIONS.findall(re.sub(r"\n(?!\n)\s*", " ", text)):
        source = root / name
        words = set(re.findall(r"\w+", source.read_text())) \
            if source.exists() else set()
        for function in [first, *re.findall(r"\w+", more)]:
            if function != "and" and function not in words:
                yield f"{function} in {name}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    status = 0
    for path in files(root):
        text = path.read_text(errors="replace")
        where = path.relative_to(root)
        missing = []
        if not ELSEWHERE.search(str(where)):
            missing += missing_files(root, text)
        if path.suffix == ".md":
            missing += missing_links(path, text)
            missing += missing_functions(root, text)
        for what in missing:
            print(f"{where}: {what} does not exist")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
