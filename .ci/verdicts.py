"""Remembers which sources a check has found clean, in whichever clone.

The folder lies beside what ccache keeps and works as its direct mode does: the
command, the checker's version and the source name the list of the files that were
read when that was checked last; these with their contents name the verdict. Only
a clean one is kept. So a check is left out if it would read the same bytes again.
A file that changes while it is checked has no verdict: whether its old or its new
bytes were read is not known.
"""
import concurrent.futures
import contextlib
import functools
import hashlib
import os
import shlex
import subprocess
import tempfile
import time

# Files in the folder; those whose last use is the oldest go first, as in ccache. A
# tree of which nothing is known makes 4200, every second one a list of some 4 KiB.
KEPT_FILES = 32768


@functools.lru_cache(maxsize=None)
def text_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@functools.lru_cache(maxsize=None)
def content(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def words_of(entry):
    """@return the compiler's command of an entry of a database, and what it makes."""
    words = shlex.split(entry["command"])
    at = words.index("-o")
    made = os.path.join(entry["directory"], words[at + 1])
    return words[:at] + words[at + 2:], made


def write(path, text):
    """Others may write, or read, the same one."""
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(path), delete=False) as f:
        f.write(text)
    os.replace(f.name, path)


def used(path):
    """@return when it was written or used last; 0 if another clone has removed it."""
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0


def is_older(path, than):
    return os.path.exists(path) and os.path.getctime(path) < than


class Verdicts:
    def __init__(self, program, told):
        """@param program  The file that runs the checker: its text counts as flags do.
        @param told  The checker's version, and what it is told beside the sources."""
        self.checker = "\0".join((content(program), content(__file__), told))
        self.root, self.begun = os.getcwd(), time.time()
        self.folder = os.path.join(text_of("ccache", "-k", "cache_dir"), "verdicts")
        os.makedirs(self.folder, exist_ok=True)

    def _path(self, *texts):
        key = hashlib.sha256("\0".join((self.checker,) + texts).encode()).hexdigest()
        return os.path.join(self.folder, key)

    def _paths(self, words, source):
        """@return where the files that it reads are listed; the verdict by these, or None."""
        command = " ".join(words).replace(self.root, ".")
        listed = self._path("reads", command, content(source))
        try:
            with open(listed, encoding="utf-8") as f:
                read = f.read().splitlines()
            contents = [content(os.path.join(self.root, path)) for path in read]
        except OSError:
            return listed, None
        return listed, self._path("clean", command, *read, *contents)

    def _remember(self, words, source, reads):
        if source not in reads or not all(is_older(path, self.begun) for path in reads):
            return
        listed, _ = self._paths(words, source)
        write(listed, "\n".join(reads).replace(self.root, "."))
        _, verdict = self._paths(words, source)
        if verdict is not None:
            write(verdict, "")

    def _check(self, entry, check):
        words, _ = words_of(entry)
        listed, verdict = self._paths(words, entry["file"])
        if verdict is not None and os.path.exists(verdict):
            with contextlib.suppress(FileNotFoundError):  # another clone removes them
                os.utime(listed)
                os.utime(verdict)
            return "known"
        with tempfile.NamedTemporaryFile("r") as rule:
            only = ["-fsyntax-only", "-MD", "-MF", rule.name]
            if check(words, only, entry["directory"]) != 0:
                return "failed"
            reads = rule.read().replace("\\\n", " ").partition(": ")[2].split()
        self._remember(words, entry["file"],
                       [os.path.join(entry["directory"], path) for path in reads])
        return "checked"

    def _forget(self):
        paths = sorted((kept.path for kept in os.scandir(self.folder)), key=used, reverse=True)
        for path in paths[KEPT_FILES:]:
            with contextlib.suppress(FileNotFoundError):  # another clone has removed it
                os.unlink(path)

    def check(self, entries, check):
        """Two at a time, or as many as there are cores.

        @param check  Of a compiler's words; those that make it only read, and tell what;
                      and their folder: an exit status.
        @return how many were checked and are clean, are known to be, have failed.
        """
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = list(pool.map(lambda entry: self._check(entry, check), entries))
        self._forget()
        return [ends.count(end) for end in ("checked", "known", "failed")]
