"""quoin load --verify against Debian's redis-server: linearizable runs pass,
stale reads of a replica are detected; --raw compared with an offline sort.

Usage: test_load_verify.py PATH_OF_QUOIN
"""

import json
import math
import os
import signal
import subprocess
import sys
import unittest

from tests.process.tools import test_load
from tests.process.tools.test_load import Redis, load

EVERY_KIND = "get:3,set:2,incr:2,del:1,cas:2,rmw:1"


class Verify(unittest.TestCase):
    def setUp(self):
        self.redis = Redis()
        self.addCleanup(self.redis.stop)

    def load(self, *args):
        return load("--to", self.redis.tcp, "--keys", "50", "--verify", *args)

    def path(self, name):
        return os.path.join(self.redis.dir, name)

    def test_one_server_is_linearizable(self):
        for args in (["--preload"], ["--rate", "20k", "--seconds", "1"],
                     ["--threads", "2", "--resp3", "--spread", "request",
                      "--to", self.redis.unix]):
            if "--rate" not in args:
                args += ["--requests", "20k"]
            done = self.load("--mix", EVERY_KIND, "--pipeline", "4", *args)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("\nlinearizable: ", done.stdout)
            self.assertIn("on 100 keys", done.stdout)  # 50 of them counters

    def test_two_runs_share_no_key(self):
        for _ in range(2):
            done = self.load("--mix", "get,set", "--requests", "2k", "--seed",
                             "7")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_broken_connections_leave_outcomes_unknown(self):
        process = subprocess.Popen(
            [test_load.QUOIN, "load", "--to", self.redis.tcp, "--keys", "50",
             "--seconds", "60", "--warmup", "0", "--mix", EVERY_KIND,
             "--pipeline", "16", "--rate", "5k", "--verify", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        for _ in range(3):
            process.stdout.readline()  # a second is over
            self.redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, err)
        summary = json.loads(out.splitlines()[-1])
        self.assertGreaterEqual(summary["disconnects"], 50)
        self.assertIn("linearizable: ", err)
        verify = summary["verify"]
        self.assertEqual(verify["verdict"], "linearizable")
        self.assertGreaterEqual(verify["operations"], summary["ops"])
        self.assertEqual(verify["keys"], 100)
        self.assertEqual(verify["violations"] + verify["undecided"], 0)
        self.assertEqual(summary["setup"]["key_size"], "16")

    def test_stale_reads_from_a_replica_are_caught(self):
        """A replica lags by the data in flight, or, for certain, when its
        master is unreachable: it continues to answer."""
        replica = Redis()
        self.addCleanup(replica.stop)
        self.redis.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
        replica.ask("REPLICAOF", "127.0.0.1", str(self.redis.port))
        while "master_link_status:up" not in replica.ask("INFO",
                                                         "replication"):
            pass
        svg = self.path("stale.svg")
        process = subprocess.Popen(
            [test_load.QUOIN, "load", "--to", self.redis.tcp, "--keys", "50",
             "--read-from", replica.tcp, "--mix", "get,set", "--rate", "2k",
             "--value-size", "16..64", "--seconds", "60", "--warmup", "0",
             "--json", "--verify", "--verify-svg", svg],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        process.stdout.readline()  # a second is over
        replica.ask("REPLICAOF", "127.0.0.1", "1")  # no server listens
        for _ in range(3):  # at least one second lies behind that
            process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, out + err)
        self.assertIn("NOT linearizable", err.splitlines()[-1])
        with open(svg, encoding="utf-8") as f:
            self.assertIn("<svg", f.read())

    def test_sizes_are_reported_correctly(self):
        """A tag needs room in each key, and a unique number in each value."""
        done = self.load("--key-size", "8", "--value-size", "1..40", "--json",
                         "--requests", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        setup = json.loads(done.stdout.splitlines()[-1])["setup"]
        self.assertEqual(setup["key_size"], "15")  # k, tag of 12, 2 digits
        self.assertEqual(setup["value_size"], "16..40")

    def test_sizes_are_mixed_by_default(self):
        for args, size in (([], "mixed:16..1048576"),
                           (["--keys", "1m"], "mixed:16..4503"),
                           (["--workload", "ycsb-a"], "1000")):
            done = self.load(*args, "--json", "--requests", "1000")
            self.assertEqual(done.returncode, 0, done.stderr)
            setup = json.loads(done.stdout.splitlines()[-1])["setup"]
            self.assertEqual(setup["value_size"], size)

    def test_a_changed_byte_in_a_value_is_found(self):
        """The last of 3000 bytes: the head does not show it."""
        self.load("--keys", "1", "--mix", "set", "--value-size", "3000",
                  "--requests", "1", "--warmup", "0")
        process = subprocess.Popen(
            [test_load.QUOIN, "load", "--to", self.redis.tcp, "--keys", "1",
             "--value-size", "3000", "--mix", "get", "--preload", "--seconds",
             "60", "--warmup", "0", "--rate", "1k", "--verify", "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        process.stdout.readline()  # a second is over
        for key in self.redis.ask("KEYS", "k*").split():
            self.redis.ask("SETRANGE", key, "2999", "#")
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1, err)
        summary = json.loads(out.splitlines()[-1])
        self.assertGreater(summary["wrong"], 0)
        self.assertGreater(summary["ops"], 0)

    def test_a_server_without_compare_and_set_is_refused(self):
        done = self.load("--mix", "cas,set", "--requests", "1k")
        self.assertEqual(done.returncode, 0, done.stderr)  # by a script
        self.redis.ask("ACL", "SETUSER", "default", "-eval")
        done = self.load("--mix", "cas,set", "--requests", "1k")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("neither SET ... IFEQ nor EVAL", done.stderr)

    def test_unsupported_options_are_refused(self):
        for args, word in ((["--mix", "get,mset"], "mset"),
                           (["--repeat", "2"], "--repeat"),
                           (["--keys", "3g"], "--keys"),
                           (["--requests", "51m"], "--requests")):
            done = self.load(*args)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(word, done.stderr)
        done = load("--to", self.redis.tcp, "--raw", "/no/such")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--raw: cannot write /no/such: No such", done.stderr)
        done = load("--to", self.redis.tcp, "--verify-svg", "/tmp/x.svg")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--verify", done.stderr)


class Files(unittest.TestCase):
    """quoin verify with a given history."""

    def verify(self, history, *args):
        return subprocess.run([test_load.QUOIN, "verify", *args, "-"],
                              input=history, capture_output=True, text=True,
                              timeout=60)

    def test_nothing_is_not_linearizable(self):
        for history in "", "# nothing but a comment\n":
            done = self.verify(history)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr,
                             "quoin verify: the files contain no operations\n")

    def test_a_picture_on_standard_output_has_it_for_itself(self):
        stale = "0 0 1 set k1 1 -> ok\n0 2 3 get k1 -> nil\n"
        for args, begins in ([], "k1"), (["--svg", "-"], "<svg"):
            done = self.verify(stale, *args)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertTrue(done.stdout.startswith(begins), done.stdout)
            self.assertIn("NOT linearizable", done.stderr if args
                          else done.stdout)


class Raw(unittest.TestCase):
    def test_percentiles_agree_with_a_sort_of_the_samples(self):
        redis = Redis()
        self.addCleanup(redis.stop)
        raw = os.path.join(redis.dir, "raw")
        done = load("--to", redis.tcp, "--rate", "20k", "--arrivals",
                    "poisson", "--seconds", "1", "--threads", "2", "--mix",
                    "get,set", "--raw", raw, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout.splitlines()[-1])
        with open(raw, encoding="ascii") as f:
            rows = [line.split() for line in f]
        self.assertEqual(len(rows), got["ops"])
        for kinds, said in (({"get", "set"}, got), *(
                ({kind}, got["kinds"][kind]) for kind in ("get", "set"))):
            for column, member in ((1, "latency_us"), (2, "service_us")):
                values = sorted(int(r[column]) for r in rows if r[0] in kinds)
                self.agree(values, said[member])

    def agree(self, values, said):
        """ceil(q n)-th value, to 1/1024 and the rounding of the JSON."""
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99),
                        ("p99.9", 0.999), ("max", 1)):
            true = values[math.ceil(q * len(values)) - 1] / 1e3
            self.assertLessEqual(abs(said[name] - true), true / 1024 + 0.001,
                                 name)


if __name__ == "__main__":
    test_load.QUOIN = sys.argv.pop(1)
    unittest.main()
