#!/usr/bin/python3
"""Fails on a relative link in a Markdown file without a target.

    links.py [ROOT]
"""
import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^(```.*?^```|    [^\n]*$)|`[^`\n]*`", re.M | re.S)


def pages(root):
    """The files of git, or all files without git."""
    done = subprocess.run(["git", "ls-files", "--", "*.md"], cwd=root,
                          capture_output=True, text=True)
    names = done.stdout.splitlines() if done.returncode == 0 else []
    return [root / name for name in names] or sorted(root.rglob("*.md"))


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    wrong = 0
    for page in filter(Path.exists, pages(root)):
        for link in LINK.findall(CODE.sub("", page.read_text())):
            path = link.partition("#")[0]
            if ":" in path or not path or (page.parent / path).exists():
                continue
            print("%s: the target of the link %s does not exist" %
                  (page.relative_to(root), link))
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main())
