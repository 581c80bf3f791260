#!/usr/bin/python3
"""Fails on words that have a better one: names of things against the field's
terms, prose against a list of phrases.

    words.py [ROOT [TABLE]]

TABLE (words.txt) has one line per word:

    KIND  LIMIT  REGEX  BETTER

KIND is `name` (identifiers, as ctags finds them: functions, types, members,
macros), `file` (names of files, without test_ and the extension), `prose`
(comments and strings of C sources; Markdown, manuals and scripts as a whole) or
`shown` (strings of C sources only: logs, errors, help). LIMIT is how many there may be: a ratchet, which fails when there are more, and when
there are fewer, so that the number is lowered with the words. REGEX must match
a whole name, or a part of the text that is no part of a longer word.
"""
import json
import re
import subprocess
import sys
from pathlib import Path

PRODUCT = ("core", "transports", "paxos", "kvs", "loadgen")
CODE = PRODUCT + ("tests",)
KINDS = ("name", "file", "prose", "shown")
# Texts that quote others, or the words themselves.
QUOTED = {"docs/questions.md", "docs/renamed.md"}
COMMENT_OR_STRING = re.compile(
    r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


class Word:
    def __init__(self, kind, limit, regex, better):
        self.kind, self.limit, self.better = kind, int(limit), better
        self.text = regex
        of_names = kind in ("name", "file")
        whole = rf"^(?:{regex})$" if of_names else \
            rf"(?<![\w-])(?:{regex})(?![\w-])"
        self.regex = re.compile(whole, 0 if of_names else re.I)


def table(path):
    """@return the Words of a table; exits 2 on a bad line."""
    words = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        row = line.split(None, 2)
        parts = re.split(r"\s{2,}", row[2], maxsplit=1) if len(row) == 3 else []
        if len(parts) != 2 or row[0] not in KINDS or not row[1].isdigit():
            sys.exit(f"{path}:{number}: not KIND LIMIT REGEX  BETTER")
        words.append(Word(row[0], row[1], *parts))
    return words


def files(root, folders, *suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in suffixes and path.is_file():
                yield path


def names(root):
    """@return {(kind, name, where)}: identifiers and names of files."""
    here = [f for f in CODE if (root / f).is_dir()]
    done = subprocess.run(
        ["ctags", "--output-format=json", "--languages=C", "--langmap=C:+.h",
         "--kinds-C=defgmpstuvx", "-R", "-f", "-", *here],
        cwd=root, capture_output=True, text=True, check=True)
    found = set()
    for line in done.stdout.splitlines():
        tag = json.loads(line)
        found.add(("name", tag["name"], tag["path"]))
    for path in files(root, here, ".c", ".h", ".py", ".sh", ".md"):
        stem = path.stem.removeprefix("test_").removesuffix("_internal")
        found.add(("file", stem, str(path.relative_to(root))))
    return found


def sources(root):
    """@return (where, comments and strings, strings only) of each product
    source, and (where, all of it, "") of each document."""
    for path in files(root, PRODUCT, ".c", ".h"):
        pieces = COMMENT_OR_STRING.findall(path.read_text())
        strings = [p for p in pieces if p[0] == '"']
        # Lines of one text are joined, with the star of a comment left out.
        yield (str(path.relative_to(root)),
               "\n".join(re.sub(r"\n\s*\*?\s*", " ", p) for p in pieces),
               "\n".join(strings))
    documents = list(files(root, PRODUCT + ("docs", "tests"), ".md"))
    documents += files(root, PRODUCT + ("docs",), ".py", ".sh", ".in")
    for path in documents + list(root.glob("*.md")) + list(root.glob("dev")):
        where = str(path.relative_to(root))
        if where not in QUOTED:
            text = re.sub(r"\n(?!\n)\s*", " ", path.read_text())
            yield where, text, ""


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    rules = table(Path(sys.argv[2]) if len(sys.argv) > 2 else
                  Path(__file__).with_name("words.txt"))
    tagged = names(root)
    texts = list(sources(root))
    status = 0
    for word in rules:
        if word.kind in ("name", "file"):
            hits = sorted({f"{where}: {name}" for kind, name, where in tagged
                           if kind == word.kind and word.regex.match(name)})
        else:
            column = 1 if word.kind == "prose" else 2
            hits = [f"{row[0]}: {m.group(0)}" for row in texts
                    for m in word.regex.finditer(row[column])]
        if len(hits) > word.limit:
            status = 1
            print(f"{word.text}: {len(hits)}, {word.limit} allowed; write: "
                  f"{word.better}", *hits, sep="\n    ")
        elif len(hits) < word.limit:
            status = 1
            print(f"{word.text}: {len(hits)} left of {word.limit}: lower the "
                  "limit in words.txt")
    return status


if __name__ == "__main__":
    sys.exit(main())
