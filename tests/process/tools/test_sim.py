"""quoin sim: the same run each time, results beside predictions, and one line
for wrong input.

Usage: test_sim.py PATH_OF_QUOIN FOLDER_OF_MACHINES [TEST...]
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

QUOIN = None
MACHINES = None


def sim(*args):
    return subprocess.run([QUOIN, "sim", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=250)


def result(*args):
    done = sim(*args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def machine(name):
    return str(MACHINES / name)


def tiled(name):
    return str(pathlib.Path(__file__).parents[3] / "machines" / name)


class Results(unittest.TestCase):
    def test_each_topology_takes_as_long_as_predicted(self):
        for operation in ("broadcast", "ack"):
            r = result(operation, "--machine", machine("syn_8x4x1"))
            names = [t["topology"] for t in r["topologies"]]
            self.assertIn("auto", names)
            self.assertIn("binary", names)
            self.assertEqual(r["nodes"], 32)
            for t in r["topologies"]:
                self.assertEqual(t["wrong"], 0)
                self.assertFalse(t["incomplete"])
                self.assertGreater(t["latency_ratio"], 0.9, t)
                self.assertLess(t["latency_ratio"], 1.25, t)
            self.assertEqual("ring:k=2" in names, operation == "ack")

    def test_barriers_on_shared_lines_are_beside_those_over_trees(self):
        forms = ["lines:central", "lines:dissemination", "lines:mcs",
                 "lines:tree"]
        m = ("barrier", "--machine", machine("syn_8x4x1"))
        rows = result(*m)["topologies"]
        names = [t["topology"] for t in rows]
        self.assertEqual(names[-4:], forms)
        self.assertIn("binary", names)
        self.assertEqual([t["topology"] for t in rows if t["chosen"]],
                         [min(rows[-4:], key=lambda t: t["predicted_ns"])
                          ["topology"]])
        for t in rows:
            self.assertEqual(t["wrong"], 0)
            self.assertGreater(t["per_second"], 0)
        # Only transfers priced, one at a time: as the prediction counts.
        alone = result(*m, "--form", "tree,dissemination", "--alone", "--bare")
        self.assertEqual([t["topology"] for t in alone["topologies"]],
                         ["lines:tree", "lines:dissemination"])
        for t in alone["topologies"]:
            self.assertAlmostEqual(t["latency_ratio"], 1, delta=0.001)
            self.assertIsNone(t["per_second"])
        both = result(*m, "--form", "mcs", "--topology", "binary")
        self.assertEqual([t["topology"] for t in both["topologies"]],
                         ["binary", "lines:mcs"])
        killed, = result(*m, "--form", "dissemination", "--fault",
                         "kill:3@2us")["topologies"]
        self.assertTrue(killed["incomplete"])
        self.assertIsNone(killed["median_ns"])
        tile, = result("barrier", "--machine", tiled("tilegx_8036.json"),
                       "--form", "central")["topologies"]
        self.assertGreater(tile["median_ns"], 0)
        self.assertIsNone(tile["predicted_ns"])

    def test_large_collectives_take_as_long_as_their_bytes(self):
        with tempfile.NamedTemporaryFile(suffix=".svg") as picture:
            r = sim("large", "--machine", machine("syn_8x4x1"),
                    "--variant", "broadcast/pull/flat", "--size", "64ki,1mi",
                    "--plot", picture.name)
            texts = [t.text for t in
                     xml.etree.ElementTree.parse(picture.name).iter()]
        for text in "broadcast, syn_8x4x1", "pull/flat", "1 MiB":
            self.assertIn(text, texts)
        rows = [line.split() for line in r.stdout.splitlines()[2:]]
        self.assertEqual([row[1] for row in rows], ["65536", "1048576"], r)
        self.assertGreater(float(rows[1][2]), 8 * float(rows[0][2]))

    def test_auto_runs_one_large_collective_of_each_operation(self):
        auto = ("large", "--machine", machine("syn_8x4x1"), "--members", "4",
                "--variant", "auto", "--size", "8")
        for more, operations in (
                ((), ["broadcast", "reduce", "scatter", "gather"]),
                (("--operation", "gather", "--isolated"), ["gather"])):
            rows = [line.split()[0].split("/")
                    for line in sim(*auto, *more).stdout.splitlines()[2:]]
            self.assertEqual([row[0] for row in rows], operations)
        self.assertEqual(rows[0][1], "pull")

    def test_rings_run_as_predicted_and_are_drawn(self):
        with tempfile.TemporaryDirectory() as folder:
            plot = folder + "/ring.svg"
            t = result("ack", "--machine", machine("syn_8x4x1"), "--alone",
                       "--topology", "ring:k=2,full,companion,tree:k=2",
                       "--plot", plot)["topologies"]
            xml.etree.ElementTree.parse(plot)
        self.assertEqual([x["topology"] for x in t],
                         ["ring:k=2,full,companion", "tree:k=2"])
        self.assertAlmostEqual(t[0]["latency_ratio"], 1, delta=0.1)
        t = result("ack", "--machine", tiled("tilegx_8036.json"),
                   "--transport", "udn", "--topology",
                   "ring:k=1,map=identity")["topologies"][0]
        self.assertEqual((t["wrong"], t["incomplete"]), (0, False))
        self.assertIsNone(t["predicted_ns"])

    def test_several_sources_are_delivered_in_one_order(self):
        """Each message once at each node, in the same order at all: wrong
        counts what is not."""
        for topology in ("ring:k=2", "binary"):
            t = result("ack", "--machine", machine("threadripper_1950x_1x16"),
                       "--topology", topology, "--sources", "5", "--size",
                       "24", "--count", "2000", "--jitter", "2")
            self.assertEqual(t["sources"], 5)
            t = t["topologies"][0]
            self.assertEqual((t["wrong"], t["incomplete"]), (0, False))
            self.assertGreaterEqual(t["operations"], 4000)
            self.assertGreater(t["per_second"], 0)

    def test_the_same_seed_gives_the_same_run(self):
        args = ("ack", "--machine", machine("threadripper_1950x_1x16"),
                "--topology", "adaptive", "--jitter", "0.05")
        first = result(*args, "--seed", "7")["topologies"][0]
        again = result(*args, "--seed", "7")["topologies"][0]
        other = result(*args, "--seed", "8")["topologies"][0]
        self.assertEqual(first["hash"], again["hash"])
        self.assertEqual(first["median_ns"], again["median_ns"])
        self.assertNotEqual(first["hash"], other["hash"])

    def test_a_long_message_and_library_prices_cost_more(self):
        args = ("broadcast", "--machine", machine("threadripper_1950x_1x16"),
                "--topology", "binary")
        short = result(*args)["topologies"][0]["median_ns"]
        priced = result(*args, "--software")["topologies"][0]["median_ns"]
        long = result(*args, "--size", "1024")["topologies"][0]["median_ns"]
        self.assertGreater(priced, short)
        self.assertGreater(long, 4 * short)

    def test_optional_terms_are_off_and_can_be_turned_on(self):
        args = ("broadcast", "--machine", machine("syn_8x4x1"), "--topology",
                "binary", "--alone")

        def run(*more):
            return result(*args, *more)["topologies"][0]
        plain = run()
        buffered = run("--store-buffer", "8")
        linked = run("--link", "1")
        self.assertLess(buffered["median_ns"], plain["median_ns"])
        self.assertGreater(linked["median_ns"], plain["median_ns"])
        self.assertNotEqual(run("--poll")["hash"], plain["hash"])
        long = ("--size", "4096")
        self.assertLess(run(*long, "--prefetch", "1")["median_ns"],
                        run(*long)["median_ns"])
        off = run("--store-buffer", "0", "--prefetch", "0", "--link", "0")
        self.assertEqual(off["hash"], plain["hash"])
        self.assertLess(run("--queued", "0.1")["median_ns"],
                        plain["median_ns"])
        self.assertEqual(run("--memory", "500", "--watched", "3")["hash"],
                         plain["hash"], "no operation stores past the caches")
        self.assertEqual(run("--hyper-threads")["hash"], plain["hash"],
                         "this machine has none")

    def test_consensus_takes_the_optional_terms(self):
        args = ("commit", "--machine", machine("syn_8x4x1"), "--load-us", "200")
        plain = result(*args)
        for more in (("--store-buffer", "8"), ("--link", "1")):
            other = result(*args, *more)
            self.assertTrue(other["held"])
            self.assertNotEqual(other["hash"], plain["hash"], more)

    def test_a_killed_node_leaves_operations_incomplete(self):
        t = result("ack", "--machine", machine("threadripper_1950x_1x16"),
                   "--topology", "binary", "--fault",
                   "kill:15@1us")["topologies"][0]
        self.assertTrue(t["incomplete"])
        self.assertEqual(t["operations"], 0)
        self.assertIsNone(t["median_ns"])

    def test_a_tiled_machine_runs_the_same_operations(self):
        # The prediction does not know of fences, and acknowledgements have more.
        most = {"broadcast": 1.25, "ack": 1.6, "reduce": 1.25, "barrier": 1.25}
        for operation in most:
            r = result(operation, "--machine", tiled("tilegx_8036.json"),
                       "--topology", "adaptive,binary,sequential")
            self.assertEqual(r["nodes"], 36)
            for t in r["topologies"]:
                self.assertEqual(t["wrong"], 0)
                self.assertGreater(t["latency_ratio"], 0.9, t)
                self.assertLess(t["latency_ratio"], most[operation], t)
        few = result("broadcast", "--machine", tiled("tilegx_8072.json"),
                     "--cores", "0,8,63,71", "--topology", "binary")
        self.assertEqual(few["nodes"], 4)

    def test_words_carry_messages_where_the_machine_has_them(self):
        m = ("--machine", tiled("tilegx_8036.json"))
        for operation in ("broadcast", "ack", "reduce", "barrier", "channel"):
            args = (operation, *m, "--topology", "binary") if (
                operation != "channel") else (operation, *m, "--cores", "0,35")
            took = {}
            for transport in ("ump", "ffq", "udn"):
                r = result(*args, "--transport", transport)
                self.assertEqual(r["transport"], transport)
                t = r["topologies"][0]
                self.assertEqual(t["wrong"], 0)
                self.assertFalse(t["incomplete"])
                took[transport] = t["median_ns"]
            # Two to eight words, and no line moves.
            self.assertLess(2 * took["udn"], took["ump"], operation)
            self.assertLess(took["ump"], took["ffq"] * 1.1, operation)
            # The prediction knows of lines only.
            self.assertIsNone(t["predicted_ns"])
        long = result("channel", *m, "--cores", "0,35", "--transport", "udn",
                      "--size", "4096")["topologies"][0]
        self.assertEqual(long["wrong"], 0)
        self.assertGreater(long["median_ns"], 10 * took["udn"])

    def test_the_table_names_each_topology(self):
        done = sim("broadcast", "--machine", machine("syn_8x4x1"), "--nodes",
                   "8", "--topology", "mst,binary")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertIn("8 nodes", lines[0])
        self.assertEqual([line.split()[0] for line in lines[2:4]],
                         ["mst", "binary"])

    def test_picture_and_trace_file_are_written(self):
        with tempfile.TemporaryDirectory(prefix="qn-sim-") as folder:
            svg, trace = f"{folder}/a.svg", f"{folder}/a.json"
            done = sim("broadcast", "--machine", machine("syn_8x4x1"),
                       "--topology", "binary", "--plot", svg, "--trace", trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            xml.etree.ElementTree.parse(svg)
            events = json.loads(pathlib.Path(trace).read_text())["traceEvents"]
            reads = [e for e in events if e["name"] == "read"]
            # 31 nodes read the message.
            self.assertGreaterEqual(len({e["tid"] for e in reads}), 31)


class Commit(unittest.TestCase):
    def test_replicas_commit_within_a_microsecond(self):
        r = result("commit", "--machine", machine("threadripper_1950x_1x16"),
                   "--software")
        self.assertTrue(r["held"], r["broken"])
        self.assertLess(r["median_ns"], 1000)
        self.assertEqual(r["failovers"], 0)

    def test_the_death_of_the_leader_is_an_outage_of_microseconds(self):
        args = ("commit", "--machine", machine("threadripper_1950x_1x16"),
                "--replicas", "5", "--software", "--fault", "kill:0@400us")
        r = result(*args)
        self.assertTrue(r["held"], r["broken"])
        self.assertEqual(r["failovers"], 1)
        self.assertGreater(r["outage_us"], 5)  # its mark comes then
        self.assertLess(r["outage_us"], 100)
        self.assertEqual(r["hash"], result(*args)["hash"])

    def test_a_process_acceptor_and_reads(self):
        r = result("commit", "--machine", machine("syn_8x4x1"), "--acceptor",
                   "process", "--reads", "0.8", "--clients", "4")
        self.assertTrue(r["held"], r["broken"])
        self.assertGreater(r["reads_per_second"], r["per_second"])

    def test_clients_at_the_leader_wait_less_than_those_of_a_follower(self):
        m = ("commit", "--machine", machine("syn_8x4x1"))
        leader, follower = result(*m, "--origin", "0"), result(*m, "--origin", "2")
        self.assertGreater(follower["median_ns"], 3 * leader["median_ns"])
        self.assertGreater(leader["everywhere_median_ns"],
                           leader["median_ns"])

    def test_a_broadcast_is_what_consensus_is_compared_with(self):
        args = ("commit", "--machine", machine("syn_8x4x1"), "--replicas", "8",
                "--acceptor", "process", "--origin", "0", "--clients", "16",
                "--batch", "1", "--topology", "stream")
        consensus, bare = result(*args), result(*args, "--broadcast")
        ratio = (consensus["sustained_per_second"] /
                 bare["sustained_per_second"])
        self.assertGreater(ratio, 0.8)
        self.assertLess(ratio, 1.1)

    def test_nodes_are_replicas_and_the_report_is_that_of_other_operations(self):
        m = ("--machine", machine("syn_8x4x1"), "--load-us", "100")
        r = result("commit", *m, "--nodes", "5")
        again = result("commit", *m, "--replicas", "5")
        self.assertEqual(r["nodes"], 5)
        self.assertEqual(r["hash"], again["hash"])
        other = result("ack", *m[:2], "--topology", "binary")
        row = other.pop("topologies")[0]
        self.assertEqual(set(other) - set(r), set())
        self.assertEqual(set(r["node_ns"]), set(row["node_ns"]))
        self.assertGreater(r["node_ns"]["reads"], 0)

    def test_replicas_commit_on_a_tiled_machine_and_over_other_lanes(self):
        r = result("commit", "--machine", tiled("tilegx_8036.json"),
                   "--load-us", "200", "--nodes", "4")
        self.assertTrue(r["held"], r["broken"])
        # A release waits there, and lines go through their homes.
        self.assertGreater(r["median_ns"], 400)
        m = ("commit", "--machine", machine("syn_8x4x1"), "--load-us", "100")
        ump, ffq = result(*m), result(*m, "--transport", "ffq")
        self.assertTrue(ffq["held"], ffq["broken"])
        self.assertEqual(ffq["transport"], "ffq")
        self.assertNotEqual(ffq["hash"], ump["hash"])

    def test_picture_and_trace_file_of_commits_are_written(self):
        with tempfile.TemporaryDirectory(prefix="qn-sim-") as folder:
            svg, trace = f"{folder}/a.svg", f"{folder}/a.json"
            m = ("commit", "--machine", machine("syn_8x4x1"), "--load-us",
                 "100", "--nodes", "4", "--fault", "kill:0@150us")
            done = sim(*m, "--plot", svg, "--trace", trace)
            self.assertEqual(done.returncode, 0, done.stderr)
            plain = sim(*m)
            self.assertEqual(done.stdout.split("hash")[1],
                             plain.stdout.split("hash")[1])
            picture = pathlib.Path(svg).read_text()
            xml.etree.ElementTree.fromstring(picture)
            self.assertIn("4 replicas", picture)
            events = json.loads(pathlib.Path(trace).read_text())["traceEvents"]
            spans = [e for e in events if e.get("ph") == "X"]
            self.assertEqual({e["tid"] for e in spans}, {0, 1, 2, 3})
            # What is measured: 100 us, of which the leader has half.
            ends = {n: max(e["ts"] + e["dur"] for e in spans if e["tid"] == n)
                    for n in range(4)}
            self.assertLess(ends[0], 52)
            self.assertGreater(ends[1], 95)
            self.assertLess(ends[1], 105)

    def test_a_profile_has_all_replicas_and_the_dearest_line(self):
        done = sim("commit", "--machine", machine("syn_8x4x1"), "--replicas",
                   "4", "--profile")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        first = next(i for i, x in enumerate(lines) if x.startswith("replica"))
        for i in range(4):
            row = lines[first + 1 + i].split()
            self.assertEqual(row[0], str(i))
            # The times of a replica add up to its clock.
            self.assertAlmostEqual(sum(map(float, row[3:])), float(row[2]),
                                   delta=1)
        dearest = lines[first + 7].split()
        self.assertGreater(float(dearest[5]), 0)
        self.assertEqual(dearest[6], "f", "all replicas see the read index")


class Replay(unittest.TestCase):
    def test_planned_trees_are_as_fast_as_the_best_static_one(self):
        done = sim("replay", "S1", "--machines", str(MACHINES))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [x for x in done.stdout.splitlines() if x.startswith("S1 ")]
        # Four machines; four operations, and commits over two kinds of plans.
        self.assertEqual(len(rows), 24)
        self.assertEqual(sum("commit" in row for row in rows), 8)
        self.assertTrue(all(row.endswith("holds") for row in rows))

    def test_every_group_of_one_machine(self):
        done = sim("replay", "S1", "--every", "--machines",
                   machine("amd64_sparse_10"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [x for x in done.stdout.splitlines() if x.startswith("S1 ")]
        # Groups of 2 to 10 cores, of 4 to 10 replicas.
        self.assertEqual([row.count(", 9 groups") for row in rows],
                         [1] * 4 + [0] * 2)
        self.assertEqual([row.count(", 7 groups") for row in rows],
                         [0] * 4 + [1] * 2)


    def rings(self, machine):
        """@return the rows, and those that do not hold."""
        done = sim("replay", "rings", "--only", machine, "--machines",
                   str(pathlib.Path(tiled("tilegx_8072.json")).parent))
        rows = [x for x in done.stdout.splitlines() if x.startswith("R1 ")]
        missed = [x for x in rows if not x.endswith("holds")]
        self.assertEqual(done.returncode, 1 if missed else 0, done.stderr)
        return rows, missed

    def test_rings_as_in_print(self):
        """The Xeon Phi of 240 threads takes longer and is not run here."""
        rows, missed = self.rings("Gx")
        self.assertEqual(len(rows), 18)
        self.assertEqual(sum("times off" in x for x in rows), 6)
        # Trees over queuepairs acknowledge a whole turn at once. Trees of
        # tasks do not, and have less than the ring.
        self.assertEqual(len(missed), 2, missed)
        self.assertIn("ring k=2 over tree k=2", missed[0])
        self.assertIn("BT k=2 over SDR k=2", missed[1])
        rows, missed = self.rings("Xeon")
        self.assertEqual(len(rows), 19)
        self.assertEqual(sum("times off" in x for x in rows), 6)
        self.assertEqual(len(missed), 1, missed)
        self.assertIn("SDR k=2 over DR k=2", missed[0])
        self.refused_without_machines()

    def refused_without_machines(self):
        with tempfile.TemporaryDirectory() as empty:
            done = sim("replay", "rings", "--machines", empty)
        self.assertEqual(done.returncode, 2)
        self.assertIn("tilegx_8072.json", done.stderr)


class Refusals(unittest.TestCase):
    def refused(self, *args, names=()):
        done = sim(*args)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for name in names:
            self.assertIn(name, done.stderr)

    def test_wrong_input_costs_one_line(self):
        m = ("--machine", machine("syn_8x4x1"))
        self.refused(names=["no operation"])
        self.refused("broadcats", *m, names=["broadcats", "broadcast",
                                             "channel", "commit", "replay"])
        self.refused("broadcast", names=["--machine"])
        self.refused("broadcast", "--machine", "/nowhere", names=["/nowhere"])
        self.refused("broadcast", *m, "--form", "mcs", names=["--form"])
        # Each name is checked, before the machine is loaded.
        for forms, wrong in (("dissemination,butterfly", "'butterfly'"),
                             ("mcs,full", "'full'"), ("mcs,", "''")):
            self.refused("barrier", "--machine", "/nowhere", "--form", forms,
                         names=["--form", wrong,
                                "central, dissemination, mcs, tree"])
        self.refused("barrier", *m, "--form", "mcs", "--plot", "a.svg",
                     names=["--plot", "--form"])
        self.refused("broadcast", *m, "--nodes", "33", names=["--nodes"])
        self.refused("broadcast", *m, "--nodes", "4", "--cores", "0-3",
                     names=["--cores"])
        self.refused("broadcast", *m, "--cores", "0", names=["2 nodes"])
        self.refused("broadcast", *m, "--topology", "nothing",
                     names=["nothing"])
        self.refused("broadcast", *m, "--topology", "ring:k=2",
                     names=["rings"])
        self.refused("broadcast", *m, "--sources", "2", names=["--sources"])
        self.refused("ack", *m, "--sources", "33", names=["--sources"])
        self.refused("ack", *m, "--sources", "2", "--alone",
                     names=["--sources", "--alone"])
        self.refused("broadcast", *m, "--root", "99", names=["--root"])
        self.refused("broadcast", *m, "--size", "4", names=["--size"])
        self.refused("broadcast", *m, "--fault", "burn:3", names=["--fault"])
        self.refused("broadcast", *m, "--fault", "kill:99@1us",
                     names=["--fault"])
        self.refused("broadcast", *m, "--fault", "slow:1*0.5",
                     names=["--fault"])
        self.refused("broadcast", *m, "--transport", "pigeon",
                     names=["--transport", "udn"])
        self.refused("broadcast", *m, "--transport", "udn",
                     names=["udn", "tilegx_8036.json"])
        self.refused("broadcast", *m, "--transport", "mpb",
                     names=["mpb", "replay scc"])
        self.refused("broadcast", "--machine", tiled("scc.json"),
                     names=["scc.json", "replay scc"])
        self.refused("broadcast", "--machine", tiled("tilegx_8036.json"),
                     "--bare", names=["--bare"])
        self.refused("broadcast", "--machine", tiled("tilegx_8036.json"),
                     "--poll", names=["--poll"])
        self.refused("broadcast", *m, "--prefetch", "1.5",
                     names=["--prefetch"])
        self.refused("broadcast", *m, "--queued", "2", names=["--queued"])
        self.refused("broadcast", *m, "--watched", "0.5", names=["--watched"])
        self.refused("broadcast", *m, "--memory", "-1", names=["--memory"])
        self.refused("broadcast", "--machine", tiled("tilegx_8036.json"),
                     "--queued", "0.5", names=["--queued"])
        self.refused("broadcast", *m, "--store-buffer", "257",
                     names=["--store-buffer"])
        self.refused("commit", *m, "--link", "2", names=["--link"])
        self.refused("commit", names=["--machine"])
        self.refused("commit", *m, "--acceptor", "none", names=["--acceptor"])
        self.refused("commit", *m, "--replicas", "33", names=["fewer cores"])
        self.refused("commit", *m, "--topology", "none", names=["--topology"])
        self.refused("commit", *m, "--fault", "kill:3@1us", names=["--fault"])
        self.refused("commit", *m, "--origin", "3", names=["--origin"])
        self.refused("commit", *m, "--broadcast", "--replicas", "2",
                     names=["--broadcast"])
        self.refused("commit", *m, "--profile", "--json", names=["--profile"])
        self.refused("commit", *m, "--transport", "udn", names=["ffq"])
        self.refused("commit", *m, "--plot", "/nowhere/a.svg",
                     names=["/nowhere"])
        self.refused("commit", *m, "--trace", "/nowhere/a.json",
                     names=["/nowhere"])
        self.refused("commit", "--machine", tiled("scc.json"), names=["scc"])
        self.refused("commit", "--machine", tiled("tilegx_8036.json"),
                     "--poll", names=["optional terms"])
        self.refused("replay", "S9", names=["S1"])
        self.refused("replay", "S1", "--machines", str(MACHINES),
                     "--plot", "x.svg", names=["--plot", "scc"])
        self.refused("replay", "scc", "--machines", str(MACHINES),
                     "--plot", "/nowhere/x.svg", names=["/nowhere/x.svg"])
        self.refused("replay", "S1", "--machines", str(MACHINES), "--only", "Gx",
                     names=["--only"])
        self.assertIn("Xeon", sim("replay", "rings", "--machines",
                                  str(MACHINES), "--only", "Cray").stderr)
        self.refused("replay", "S1", "--machines", "/nowhere",
                     names=["/nowhere"])
        with tempfile.TemporaryDirectory() as empty:
            done = sim("replay", "S1", "--machines", empty)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no machine", done.stderr)
        self.refused("large", "--machine", machine("syn_8x4x1"), "--plot",
                     "/nowhere/a.svg", names=["/nowhere/a.svg"])
        self.refused("large", "--machine", machine("syn_8x4x1"), "--members",
                     "33", names=["--members: the machine has fewer"])
        self.refused("large", "--machine", machine("syn_8x4x1"), "--members",
                     "4", "--root", "4", names=["--root takes a member"])
        for slow in "0", "0.5", "nan":
            self.refused("large", "--machine", machine("syn_8x4x1"), "--slow",
                         slow, names=["--slow"])
        self.refused("broadcast", *m, "--plot", "/nowhere/a.svg",
                     names=["/nowhere"])


if __name__ == "__main__":
    QUOIN, MACHINES = sys.argv[1], pathlib.Path(sys.argv[2])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
