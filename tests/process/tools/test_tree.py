"""quoin tree: every format reads back, and wrong input costs one line.

Usage: test_tree.py PATH_OF_QUOIN FOLDER_OF_MACHINES
"""

import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

QUOIN = None
MACHINES = None


def tree(*args):
    return subprocess.run([QUOIN, "tree", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


def searches(args):
    """Whether --moves has an effect: a topology that is shown alone may be
    built by rule."""
    alone = "--explain" in args or {"csv", "dot", "svg"} & set(args)
    return not alone or "--algo" not in args


def good(*args):
    if "--moves" not in args and searches(args):
        args = (*args, "--moves", "1k")
    done = tree(*args)
    assert done.returncode == 0, done.stderr
    return done.stdout


def machine(name):
    return str(MACHINES / name)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qn-tree-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def refused(self, *args, names=()):
        """One line on stderr that has all of `names`; status 2."""
        done = tree(*args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for name in names:
            self.assertIn(str(name), done.stderr)


class Formats(Case):
    def test_csv_reads_back_as_the_same_plan(self):
        where = machine("syn_8x4x1")
        plan = good("--machine", where, "--algo", "mst", "--root", "5",
                    "--format", "csv")
        rows = list(csv.reader(io.StringIO(plan)))
        self.assertEqual(rows[0], ["# root=5"])
        self.assertEqual(rows[1], ["parent", "child", "order"])
        self.assertEqual(len(rows), 2 + 31)
        path = self.file("plan.csv", plan)
        self.assertEqual(plan, good("--machine", where, "--algo", path,
                                    "--format", "csv"))
        self.assertRegex(good("--machine", where, "--algo", path),
                         r"\* \S*plan.csv +5 ")

    def test_json_names_every_topology_and_the_bound(self):
        got = json.loads(good("--machine", machine("intel_xeon_e5_v2_2x10"),
                              "--op", "ack", "--format", "json"))
        names = [c["name"] for c in got["compared"]]
        for name in ("auto", "adaptive", "cluster", "ring:k=2"):
            self.assertIn(name, names)
        self.assertEqual(got["op"], "ack")
        self.assertEqual(len(got["down"]["edges"]), 19)
        cost = {c["name"]: c["cycles"] for c in got["compared"]}
        self.assertLessEqual(cost["auto"], min(
            v for k, v in cost.items() if not k.startswith("ring")) + 1e-6)
        self.assertLessEqual(got["bound"], cost["auto"])

    def test_pictures_are_xml_and_as_large_as_their_viewbox(self):
        for args in (["--algo", "auto"], ["--op", "ack", "--algo",
                                          "ring:k=2,full,companion"]):
            path = str(self.folder / "a.svg")
            good("--machine", machine("threadripper_1950x_1x16"), *args,
                 "--format", "svg", "-o", path)
            root = xml.etree.ElementTree.parse(path).getroot()
            self.assertEqual(root.get("viewBox"), "0 0 %s %s" % (
                root.get("width"), root.get("height")))
            circles = root.findall(".//{*}circle")
            self.assertEqual(len(circles), 16 + 1, "cores, and the root's ring")

    def test_the_extension_of_the_output_selects_the_format(self):
        where = ["--machine", machine("amd64_sparse_10"), "--one-tree"]
        for ending, begins in (("svg", "<svg"), ("json", "{"), ("dot", "digraph"),
                               ("csv", "# root="), ("txt", "amd64_")):
            path = self.folder / ("t." + ending)
            good(*where, "-o", str(path))
            self.assertTrue(path.read_text().startswith(begins), ending)
        self.refused(*where, "-o", str(self.folder / "t.png"), names=[
            "t.png: no format has this extension; use .txt, .csv"])
        # --format overrides; without an ending it is text.
        path = self.folder / "t.png"
        good(*where, "-o", str(path), "--format", "csv")
        self.assertTrue(path.read_text().startswith("# root="))
        for name in "t", "t.d/t":
            (self.folder / "t.d").mkdir(exist_ok=True)
            good(*where, "-o", str(self.folder / name))
            text = (self.folder / name).read_text()
            self.assertTrue(text.startswith("amd64_"), name)
        self.refused(*where, "--explain", "-o", str(self.folder / "t.svg"),
                     names=["--explain is text"])

    def test_a_dash_is_standard_output(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op", "barrier",
                 "--format", "csv"]
        up = self.folder / "up.csv"
        down = good(*where, "--up-file", str(up))
        self.assertEqual(down, good(*where, "-o", "-", "--up-file", str(up)))
        self.assertEqual(up.read_text(), good(
            *where, "-o", str(self.folder / "down.csv"), "--up-file", "-"))
        self.refused(*where, "--up-file", "-", names=["are the same file"])
        self.assertFalse(pathlib.Path("-").exists())

    def test_what_cannot_be_written_is_one_line(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op", "barrier",
                 "--format", "csv", "--moves", "1k"]
        done = tree(*where, "--up-file", "/dev/full")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr,
                         "quoin tree: /dev/full: No space left on device\n")

    def test_graphviz_has_every_edge(self):
        got = good("--machine", machine("amd64_sparse_10"), "--format", "dot",
                   "--algo", "binary")
        self.assertEqual(got.count("->"), 9)

    def test_a_plan_of_two_trees_reads_back_from_each_format(self):
        where = ["--machine", machine("syn_8x4x1"), "--op", "barrier"]
        down, up = str(self.folder / "d.csv"), str(self.folder / "u.csv")
        both = str(self.folder / "p.json")
        good(*where, "--format", "csv", "--up-file", up, "-o", down)
        good(*where, "--format", "json", "-o", both)
        plan = json.loads(pathlib.Path(both).read_text())
        self.assertNotEqual(plan["down"]["edges"], plan["up"]["edges"])
        self.assertGreater(plan["compared"][0]["pipeline_cycles"], 0)
        for name in (down + ",up=" + up, both):
            again = json.loads(good(*where, "--algo", name, "--format",
                                    "json"))
            self.assertEqual(again["down"], plan["down"])
            self.assertEqual(again["up"], plan["up"])
            self.assertEqual(again["compared"][0]["cycles"],
                             plan["compared"][0]["cycles"])
        dot = good(*where, "--format", "dot")
        self.assertIn("digraph down {", dot)
        self.assertIn("digraph up {", dot)

    def test_a_ring_that_has_more_throughput_is_named(self):
        where = ["--machine", machine("syn_8x4x1")]
        self.assertIn("A ring has more throughput: ring:k=",
                      good(*where, "--op", "throughput"))
        self.assertNotIn("A ring", good(*where, "--op", "2pc"))

    def test_throughput_is_shown_if_requested(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op",
                 "throughput", "--algo", "binary"]
        cost = json.loads(good(*where, "--format", "json"))["compared"][0]
        said = "%.1f cycles of the busiest core per operation"
        self.assertIn(said % cost["cycles"], good(*where, "--explain"))
        self.assertIn("busiest core %.0f cycles per operation" %
                      cost["cycles"], good(*where, "--format", "svg"))

    def test_answers_and_rings_are_explained(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op", "ack"]
        for algo in "binary", "ring:k=2":
            got = good(*where, "--algo", algo, "--explain")
            self.assertEqual(got.count("why then: "), 10, algo)

    def test_explained_is_every_core_and_the_prediction(self):
        got = good("--machine", machine("amd64_sparse_10"), "--explain")
        self.assertEqual(got.count("  core "), 10)
        table = good("--machine", machine("amd64_sparse_10"), "--format",
                     "json")
        cycles = json.loads(table)["compared"][0]["cycles"]
        self.assertIn("auto: %.1f cycles" % cycles, got)

    def test_a_subset_is_planned_on_its_own(self):
        got = good("--machine", machine("syn_8x4x1"), "--cores", "1,8-11,30",
                   "--root", "9", "--format", "csv")
        used = {int(x) for row in got.splitlines()[2:]
                for x in row.split(",")[:2]}
        self.assertEqual(used, {1, 8, 9, 10, 11, 30})

    def test_an_unproven_plan_says_how_to_prove_it(self):
        plan = ("--machine", machine("amd64_sparse_10"), "--op", "ack",
                "--root", "0", "--moves")
        few, many = good(*plan, "1000"), good(*plan, "600000")
        self.assertIn("--moves 10000000 proves it", few)
        self.assertNotIn("proven.", few)
        self.assertIn("the best tree: proven.", many)

    def test_other_plans_mention_no_proof(self):
        for op in "broadcast", "ack":
            got = good("--machine", machine("syn_8x4x1"), "--op", op,
                       "--moves", "1000")
            self.assertNotIn("proven", got, op)


class Many(Case):
    def test_the_front_has_no_point_that_another_beats(self):
        got = good("--machine", machine("amd64_sparse_10"), "--compare",
                   "--moves", "100", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(got)))
        at = [(float(r["latency"]), float(r["pipeline_cycles"])) for r in rows]
        for r, (x, y) in zip(rows, at):
            beaten = any(a <= x and b <= y and (a, b) != (x, y)
                         for a, b in at)
            if r["front"] == "1":
                self.assertFalse(beaten, r)
            else:
                self.assertTrue(beaten or at.count((x, y)) > 1, r)
        names = {r["topology"] for r in rows}
        self.assertLessEqual({"ring:k=9", "tree:k=9", "mst", "auto",
                              "ring:k=1,companion", "ring:k=2,map=busy"}, names)

    def test_labels_of_the_front_do_not_overlap(self):
        for name in "intel_xeon_e5_v2_2x10", "amd64_sparse_10":
            root = xml.etree.ElementTree.fromstring(good(
                "--machine", machine(name), "--compare", "--moves", "100",
                "--format", "svg"))
            lines = [[float(e.get(k)) for k in ("x1", "y1", "x2", "y2")]
                     for e in root.findall(".//{*}line")
                     if e.get("class").split()[0] in ("thin", "bold")]
            labels = [(float(e.get("x")), float(e.get("y")) - 8,
                       5.5 * len(e.text), 8, e.text)
                      for e in root.findall(".//{*}text")
                      if e.get("class").startswith("small ")]
            self.assertGreater(len(lines), 20)
            self.assertGreater(len(labels), 10)
            for i, (x, y, width, height, text) in enumerate(labels):
                for x1, y1, x2, y2 in lines:
                    for k in range(501):
                        px = x1 + (x2 - x1) * k / 500
                        py = y1 + (y2 - y1) * k / 500
                        self.assertFalse(x <= px <= x + width and
                                         y <= py <= y + height, text)
                for x2, y2, width2, height2, text2 in labels[:i]:
                    self.assertTrue(x + width < x2 or x2 + width2 < x or
                                    y + height < y2 or y2 + height2 < y,
                                    text + " and " + text2)

    def test_a_sweep_has_every_number_and_the_planner_is_best(self):
        args = ["--survey", str(MACHINES), "--sizes", "2,6-7", "--moves",
                "100", "--format", "csv"]
        got = good(*args)
        self.assertEqual(got, good(*args, "--threads", "3"))
        rows = list(csv.DictReader(io.StringIO(got)))
        self.assertEqual(len(rows), 4 * 3 * (14 * 6 + 4 * 2))
        for r in rows:
            if not r["topology"].startswith(("ring", "auto,")):
                self.assertGreaterEqual(float(r["times_auto"]), 1 - 1e-6, r)

    def test_pictures_are_xml(self):
        for args in (["--machine", machine("amd64_sparse_10"), "--compare"],
                     ["--survey", str(MACHINES), "--sizes", "4"],
                     ["--survey", machine("amd64_sparse_10"), "--sizes",
                      "2-9"]):
            xml.etree.ElementTree.fromstring(good(
                *args, "--moves", "100", "--format", "svg"))


class Refusals(Case):
    def test_machines(self):
        self.refused("--machine", "/no/such", names=["/no/such"])
        whole = pathlib.Path(machine("amd64_sparse_10"))
        pairs = (whole / "pairwise.csv").read_text()
        lines = pairs.splitlines(keepends=True)
        numa = (whole / "numa.csv").read_text()
        row = lines[3].strip().split(",")

        def bad(name, text):
            folder = self.folder / name
            folder.mkdir()
            (folder / "numa.csv").write_text(numa)
            (folder / "pairwise.csv").write_text(text)
            return str(folder)

        for name, cost in (("negative", "-1"), ("nan", "nan"), ("zero", "0")):
            text = "".join(lines[:3] + [",".join(row[:2] + [cost, row[3]]) +
                                        "\n"] + lines[4:])
            self.refused("--machine", bad(name, text),
                         names=["pairwise.csv:4:", "send_cycles"])
        self.refused("--machine", bad("cut", pairs[:-3]),
                     names=["pairwise.csv:%d" % len(lines)])
        self.refused("--machine", bad("twice", pairs + lines[5]),
                     names=["pairwise.csv:%d" % (len(lines) + 1)])
        self.refused("--machine", bad("missing", "".join(lines[:-1])),
                     names=["pairwise.csv"])

    def test_topologies(self):
        def bad(text, *names):
            path = self.file("t.csv", "parent,child,order\n" + text)
            self.refused("--machine", machine("amd64_sparse_10"), "--cores",
                         "0-3", "--algo", path, names=["t.csv", *names])

        bad("0,1,0\n0,2,1\n2,1,0\n", ":4:", "two parents")
        bad("0,1,0\n2,3,0\n3,2,0\n", "cycle")
        bad("0,1,0\n0,2,1\n", "missing")
        bad("0,1,0\n0,2,1\n0,77,2\n", ":4:", "core 77")
        bad("0,1,0\n0,2,2\n0,3,1\n1,0", ":5")
        cut = self.file("cut.json", '{"format": "quoin-tree",\n"version": 1')
        self.refused("--machine", machine("amd64_sparse_10"), "--algo", cut,
                     names=["cut.json:2: JSON: ", "the file may be cut"])

    def test_options(self):
        where = ["--machine", machine("amd64_sparse_10")]
        self.refused(names=["--machine"])
        self.refused(*where, "--root", "9999", names=["--root", "9999"])
        self.refused(*where, "--cores", "0-", names=["--cores", "'0-'"])
        self.refused(*where, "--algo", "adaptiv", names=["adaptive"])
        self.refused(*where, "--op", "gather", names=["--op", "broadcast"])
        self.refused(*where, "--queued", "2", names=["--queued"])
        self.refused(*where, "--format", "png", names=["--format", "svg"])
        self.refused(*where, "-o", "/no/such/a.svg", names=["/no/such/a.svg"])
        self.refused(*where, "--algo", "ring:k=2", names=["acknowledged"])
        self.refused(*where, "--compare", "--format", "dot", names=["svg"])
        self.refused("--survey", str(MACHINES), "--format", "json",
                     names=["--survey has no such format"])
        self.refused("--survey", "/no/such", names=["/no/such"])
        self.refused("--survey", str(MACHINES), "--sizes", "1-4",
                     names=["--sizes", "1-4"])
        self.refused(*where, "--survey", str(MACHINES), names=["--survey"])
        survey = ["--survey", str(MACHINES)]
        up = ["--up-file", str(self.folder / "up.csv")]
        for more in [], ["--format", "csv", "--op", "ack", "--algo",
                         "ring:k=2"]:
            self.refused(*where, *more, *up, names=[
                "--up-file needs --format csv and a tree"])
        for args in ([*survey, *up], [*where, "--compare", *up],
                     [*survey, "--algo", "mst"], [*survey, "--explain"],
                     [*survey, "--op", "ack"], [*survey, "--compare"],
                     [*survey, "--cores", "0-3"], [*survey, "--root", "0"],
                     [*where, "--compare", "--explain"],
                     [*where, "--compare", "--algo", "mst"],
                     [*where, "--compare", "--one-tree"],
                     [*where, "--compare", "--op", "ack"],
                     [*where, "--sizes", "2"], [*where, "--threads", "1"],
                     [*where, "--format", "csv", "--algo", "mst",
                      "--one-tree"],
                     [*where, "--explain", "--algo", "mst", "--robust"]):
            self.refused(*args, names=["cannot be used with"])
        ack = [*where, "--op", "ack", "--format", "svg", "--algo"]
        search, group = ["--seed", "2", "--moves", "9"], ["--level", "cache"]
        for algo, has_use in (("auto", search), ("ring:k=2", search),
                              ("ring:k=2,map=busy", search),
                              ("cluster", group), ("adaptive", group),
                              ("ring:k=2,map=identity", []), ("mst", []),
                              ("tree:k=3", [])):
            tree_of = tree(*ack, algo, *has_use)
            self.assertEqual(tree_of.returncode, 0, tree_of.stderr)
            for option in (search[:2], search[2:], group):
                if option[0] not in has_use:
                    self.refused(*ack, algo, *option, names=[
                        option[0] + " cannot be used with --algo " + algo,
                        "remove it"])
        self.refused(*where, "--explain", "--format", "svg",
                     names=["--explain is text"])
        self.refused(*where, "--format", "csv", "--algo", "mst", "--algo",
                     "mst2", names=["one --algo"])

    def test_files_are_tried_before_anything_is_planned(self):
        """No --moves here: a sweep of all sizes would take a minute."""
        for args in (["--survey", str(MACHINES)],
                     ["--machine", machine("amd64_sparse_10")]):
            self.refused(*args, "-o", "/no/such/a.svg", "--format", "svg",
                         names=["--output: /no/such/a.svg: No such file"])
            self.refused(*args, "-o", str(self.folder),
                         names=["is a folder; give a file"])
            self.refused(*args, "-o", "", names=["--output: '': No such"])
        self.refused(*args, "--format", "csv", "--up-file", "/no/such/up.csv",
                     names=["--up-file: /no/such/up.csv: No such file"])
        one = str(self.folder / "one.csv")
        self.refused(*args, "--op", "barrier", "--format", "csv", "--up-file",
                     one, "-o", one, names=["are the same file; give two"])

    def test_a_map_from_a_file_has_its_own_root(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op", "ack",
                 "--format", "csv"]
        ring = str(self.folder / "ring.csv")
        good(*where, "--algo", "ring:k=2,map=identity", "--root", "3", "-o",
             ring)
        again = [*where, "--algo", "ring:k=2,map=" + ring]
        self.assertEqual(good(*again), good(*again, "--root", "3"))
        self.refused(*again, "--root", "0",
                     names=[ring, "core 3, not 0; leave out --root"])

    def test_names(self):
        where = ["--machine", machine("amd64_sparse_10"), "--op", "ack"]
        for name in ("tree:k=2,", "tree:k=", "tree:k=0", "tree:k=2,full",
                     "ring:k=2,", "ring:k=2,,full", "ring:k=2,k=3", "ring:",
                     "ring:full", "ring:k=2,map=latency,map=busy"):
            self.refused(*where, "--algo", name, names=["not a topology"])
        self.refused(*where, "--algo", "ring:k=65", names=["1 to 64"])


if __name__ == "__main__":
    QUOIN, MACHINES = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
