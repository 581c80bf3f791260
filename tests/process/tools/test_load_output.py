"""Output of quoin load: every format of a real run.

Usage: test_load_output.py PATH_OF_QUOIN ROOT_OF_THE_SOURCES
"""

import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import jsonschema

from tests.process.tools.test_load import Redis

QUOIN = None
ROOT = None


def load(*args, stdout=subprocess.PIPE):
    return subprocess.run([QUOIN, "load", *args], stdout=stdout,
                          stderr=subprocess.PIPE, text=True, timeout=60)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qn-output-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def path(self, name):
        return str(self.folder / name)


class Formats(Folder):
    """One run with all outputs, compared with each other."""

    def setUp(self):
        super().setUp()
        self.redis = Redis()
        self.addCleanup(self.redis.stop)
        done = load("--to", self.redis.tcp, "--requests", "120k", "--mix",
                    "get:3,set:1,ping", "--keys", "100", "--warmup", "0",
                    "--json", "--csv", self.path("csv"), "--hgrm",
                    self.path("hgrm"), "--plot", self.path("svg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.lines = [json.loads(line) for line in done.stdout.splitlines()]
        self.summary = self.lines[-1]

    def test_all_formats_agree(self):
        self.json_fits_its_schema()
        self.csv_says_what_the_seconds_say()
        self.hgrm_says_what_the_summary_says()
        self.plot_says_what_the_summary_says()

    def json_fits_its_schema(self):
        with open(ROOT / "loadgen/report/load.schema.json") as f:
            schema = json.load(f)
        checker = jsonschema.Draft202012Validator(schema)
        checker.check_schema(schema)
        for line in self.lines:
            checker.validate(line)
        types = [line["type"] for line in self.lines]
        self.assertGreaterEqual(len(types), 2)
        self.assertEqual(types, ["second"] * (len(types) - 1) + ["summary"])
        # The schema is strict: each member is required and no other is
        # accepted.
        for name in self.summary:
            less = {k: v for k, v in self.summary.items() if k != name}
            self.assertFalse(checker.is_valid(less), name)
        self.assertFalse(checker.is_valid({**self.summary, "more": 1}))

    def csv_says_what_the_seconds_say(self):
        with open(self.path("csv")) as f:
            rows = list(csv.DictReader(f))
        for second in self.lines[:-1]:
            at = f"{second['at']:.3f}"
            mine = {r["kind"]: r for r in rows if r["at_s"] == at}
            self.assertEqual(mine.keys(), {"all", *second["kinds"]})
            for kind, row in mine.items():
                want = second if kind == "all" else second["kinds"][kind]
                self.assertEqual(int(row["ops"]), want["ops"])
                for name, us in want["latency_us"].items():
                    self.assertAlmostEqual(float(row[f"{name}_us"]), us, 3)
        self.assertEqual(sum(int(r["ops"]) for r in rows if r["kind"] == "all"),
                         self.summary["ops"])

    def hgrm_says_what_the_summary_says(self):
        # The plotter reads lines of four numbers; see its plotFiles.html.
        with open(self.path("hgrm")) as f:
            text = f.read()
        steps = [list(map(float, line.split())) for line in text.splitlines()
                 if re.fullmatch(r" *[\d.]+ [\d.]+ +\d+ +[\d.]+", line)]
        self.assertGreater(len(steps), 20)
        median = next(s for s in steps if s[1] == 0.5)
        self.assertAlmostEqual(median[0] * 1000,
                               self.summary["latency_us"]["p50"], 2)
        last = re.search(r"Max +=\s+([\d.]+), Total count +=\s+(\d+)", text)
        self.assertAlmostEqual(float(last[1]) * 1000,
                               self.summary["latency_us"]["max"], 2)
        self.assertEqual(int(last[2]), self.summary["ops"])
        for a, b in zip(steps, steps[1:]):
            self.assertLessEqual(a[0], b[0])
            self.assertLess(a[1], b[1])


    def plot_says_what_the_summary_says(self):
        svg = xml.etree.ElementTree.parse(self.path("svg")).getroot()
        name = "{http://www.w3.org/2000/svg}"
        texts = [e.text for e in svg.iter(f"{name}text")]
        said = " ".join(texts)
        for words in ("quoin load", self.redis.tcp, "get:3,set:1,ping",
                      self.summary["setup"]["seed"], "50 connections",
                      "pipeline 1", "time (s)", "percentile (%", "p50", "max",
                      "No errors"):
            self.assertIn(words, said)
        for kind in *self.summary["kinds"], "all":
            self.assertEqual(texts.count(kind), 2, "table and line")
        self.assertIn(three_digits(self.summary["ops_per_s"] / 1000) + "k",
                      texts)
        # One file: no external script, font or picture.
        self.assertLessEqual({e.tag for e in svg.iter()}, {
            name + t for t in ("svg", "title", "desc", "style", "rect", "text",
                               "line", "path", "circle")})
        style = svg.find(f"{name}style").text
        self.assertIn("prefers-color-scheme:dark", style)
        self.assertNotIn("url(", style)
        for path in svg.iter(f"{name}path"):
            self.assertNotIn("nan", path.get("d"))


def three_digits(x):
    text = f"{x:.{2 if x < 9.995 else 1 if x < 99.95 else 0}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


class Readme(unittest.TestCase):
    def test_every_member_of_the_schema_is_explained(self):
        readme = (ROOT / "docs/load.md").read_text()
        with open(ROOT / "loadgen/report/load.schema.json") as f:
            schema = json.load(f)["$defs"]
        names = {*schema["second"]["properties"],
                 *schema["summary"]["properties"],
                 *schema["summary"]["properties"]["setup"]["properties"]}
        table = readme[readme.index("`--json`"):readme.index("`--csv FILE`")]
        for name in names:
            self.assertRegex(table, rf"[` ]{name}[` ]")


class Manual(unittest.TestCase):
    def test_the_manual_names_existing_options(self):
        manual = (ROOT / "docs/man/quoin-load.1.in").read_text()
        told = set(re.findall(r"Fl -([a-z][a-z0-9-]*)", manual))
        told -= {"help", "option"}
        exist = set(re.findall(r"^  --([a-z0-9-]+)", load("--help").stdout,
                               re.M))
        self.assertGreater(len(told), 2)
        self.assertEqual(told - exist, set())

    def test_the_guide_names_existing_options(self):
        guide = (ROOT / "docs/load.md").read_text()
        told = set(re.findall(r"--([a-z][a-z0-9-]*)", guide)) - {"help"}
        exist = set(re.findall(r"^  --([a-z0-9-]+)", load("--help").stdout,
                               re.M))
        self.assertEqual(told - exist, set())


class Refused(Folder):
    """Files are tried before anything else: no server listens on port 1."""

    def refuse(self, *args, words=()):
        before = sorted(self.folder.rglob("*"))
        done = load("--to", "127.0.0.1:1", *args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_files_that_cannot_be_written(self):
        missing = self.path("no/such")
        for option in ("--csv", "--hgrm", "--plot", "--raw",
                       "--verify-svg"):
            self.refuse("--verify", option, missing, words=(option, missing, "No such"))
            self.refuse("--verify", option, str(self.folder),
                        words=("directory",))
        self.refuse("--csv", self.path("good"), "--plot", missing)

    def test_one_file_for_two(self):
        self.refuse("--csv", "-", "--plot", "-",
                    words=("--csv and --plot both write to standard output",))
        self.refuse("--json", "--plot", "-",
                    words=("--json and --plot both write to standard output",))
        self.refuse("--csv", self.path("one"), "--hgrm", self.path("one"),
                    words=("--csv", "--hgrm", "both"))
        self.refuse("--csv", self.path("one"), "--raw", self.path("one"),
                    words=("--csv", "--raw", "both"))
        os.symlink(self.path("real"), self.path("link"))
        (self.folder / "real").write_text("kept")
        self.refuse("--csv", self.path("real"), "--hgrm", self.path("link"))
        self.assertEqual((self.folder / "real").read_text(), "kept")

    def test_a_run_that_does_not_begin_leaves_files_unchanged(self):
        (self.folder / "old").write_text("kept")
        for option in "--csv", "--raw":
            done = load("--to", "127.0.0.1:1", option, self.path("old"),
                        "--hgrm", self.path("new"))
            self.assertEqual(done.returncode, 1)  # no server listens
            self.assertEqual((self.folder / "old").read_text(), "kept")
            self.assertFalse((self.folder / "new").exists())


class Stdout(Folder):
    def test_a_dash_is_standard_output_and_the_table_moves(self):
        redis = Redis()
        self.addCleanup(redis.stop)
        for option, begins in (("--csv", "run,at_s"), ("--plot", "<svg"),
                               ("--hgrm", "       Value"), ("--raw", "get ")):
            done = load("--to", redis.tcp, "--requests", "10", "--mix", "get",
                        option, "-")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.startswith(begins), done.stdout)
            self.assertNotIn("longest without", done.stdout)
            self.assertIn("longest without", done.stderr)
            self.assertFalse(os.path.exists("-"))


class Lost(Folder):
    def test_a_full_disk_gives_status_1(self):
        redis = Redis()
        self.addCleanup(redis.stop)
        some = "--to", redis.tcp, "--requests", "10", "--mix", "ping"
        for option in "--csv", "--hgrm", "--plot", "--raw":
            done = load(*some, option, "/dev/full")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{option}: cannot write /dev/full: No space",
                          done.stderr)
        with open("/dev/full", "w") as full:
            for more in [], ["--json"]:
                done = load(*some, *more, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn("stdout: No space", done.stderr)


if __name__ == "__main__":
    QUOIN = sys.argv.pop(1)
    ROOT = pathlib.Path(sys.argv.pop(1))
    unittest.main()
