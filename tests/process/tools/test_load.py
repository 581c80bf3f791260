"""quoin load against Debian's redis-server: counts, checks, exit statuses.

Usage: test_load.py PATH_OF_QUOIN
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

QUOIN = None


class Redis:
    """A redis-server on a Unix socket and a TCP port of its own."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="qn-load-")
        self.path = os.path.join(self.dir, "s")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
             "--unixsocket", self.path, "--save", "", "--appendonly", "no",
             "--dir", self.dir],
            stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:  # it reports when it is ready
            if "ready to accept" in line.lower() and "at" in line:
                break
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        self.tcp = f"127.0.0.1:{self.port}"
        self.unix = f"unix:{self.path}"

    def ask(self, *words):
        return subprocess.run(["redis-cli", "-s", self.path, *words],
                              stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()

    def calls(self, command):
        for line in self.ask("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{command}:"):
                return int(line.split("calls=")[1].split(",")[0])
        return 0

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.dir)


def load(*args):
    return subprocess.run([QUOIN, "load", *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60)


class Load(unittest.TestCase):
    def setUp(self):
        self.redis = Redis()
        self.addCleanup(self.redis.stop)

    def run_json(self, *args):
        """@return the summary; its seconds are in `self.seconds`."""
        done = load("--to", self.redis.tcp, "--json", *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        *self.seconds, summary = map(json.loads, done.stdout.splitlines())
        return summary

    def long_enough(self):
        """Durations with at least one answer on any machine: to be tried in
        turn."""
        return "0.1", "0.4", "1.6", "6.4", "20"

    def test_a_count_is_sent_exactly_and_answered(self):
        for warmup in "0", "0.1":
            self.redis.ask("CONFIG", "RESETSTAT")
            got = self.run_json("--requests", "10007", "--connections", "7",
                                "--pipeline", "16", "--keys", "1k",
                                "--threads", "2", "--warmup", warmup,
                                "--mix", "get,set,incr,mset,ping")
            self.assertEqual(got["ops"], 10007)
            self.assertEqual(got["errors"] + got["wrong"], 0)
            for kind in "get", "set", "incr", "mset", "ping":
                ops = got["kinds"][kind]["ops"]
                calls = self.redis.calls(kind)
                if kind == "ping":
                    calls -= 1  # one request before the load began
                if warmup == "0":
                    self.assertEqual(ops, calls, kind)
                else:
                    self.assertLess(ops, calls, kind)

    def test_every_operation_is_answered_right(self):
        got = self.run_json(
            "--requests", "5000", "--keys", "500", "--warmup", "0", "--preload",
            "--pipeline", "8", "--mix", "get,set,incr,mset,ping,del,cas,insert,"
            "rmw,scan", "--cas", "eval", "--dist", "zipf:1.2", "--key-size",
            "16..64", "--value-size", "0..1000")
        self.assertEqual(got["ops"], 5000)
        self.assertEqual(got["errors"] + got["wrong"], 0, got["first_wrong"])
        self.assertEqual(len(got["kinds"]), 10)
        self.assertEqual(self.redis.calls("scan"), got["kinds"]["scan"]["ops"])
        self.assertEqual(self.redis.calls("eval"), got["kinds"]["cas"]["ops"])

    def test_ycsb_finds_all_it_asks_for(self):
        for name in "abcdf":
            self.redis.ask("FLUSHALL")
            got = self.run_json("--workload", f"ycsb-{name}", "--preload",
                                "--keys", "500", "--requests", "3000")
            self.assertEqual(got["ops"], 3000)
            self.assertEqual(got["errors"] + got["wrong"] + got["misses"], 0)
            self.assertEqual(got["setup"]["value_size"], "1000")

    def test_a_second_run_finds_what_the_first_one_wrote(self):
        sizes = "--keys", "300", "--key-size", "etc", "--value-size", "etc"
        self.run_json(*sizes, "--preload", "--requests", "100", "--mix", "set")
        got = self.run_json(*sizes, "--requests", "2000", "--mix", "get")
        self.assertEqual(got["wrong"] + got["misses"], 0, got["first_wrong"])

    def test_preload_stores_every_key_once(self):
        got = self.run_json("--preload", "--keys", "10001", "--requests", "500",
                            "--value-size", "300", "--mix", "get",
                            "--warmup", "0")
        self.assertEqual(self.redis.ask("DBSIZE"), "10001")
        self.assertEqual(self.redis.calls("set"), 10001)
        self.assertEqual(got["misses"], 0)
        self.assertEqual(got["wrong"], 0)

    def test_large_values_survive_full_sockets(self):
        got = self.run_json("--preload", "--keys", "20", "--value-size",
                            "200ki", "--requests", "400", "--pipeline", "20",
                            "--connections", "3", "--mix", "get,set")
        self.assertEqual(got["ops"], 400)
        self.assertEqual(got["wrong"], 0)

    def test_time_cpu_and_intervals_are_reported(self):
        for seconds in "1.2", "3", "20":  # until two are distinguished
            got = self.run_json("--seconds", seconds, "--cpu-of",
                                str(self.redis.process.pid), "--keys", "1k",
                                "--mix", "ping", "--connections", "2")
            if len(self.seconds) >= 2:
                break
        self.assertGreater(got["cpu_us_per_op"], 0)
        self.assertGreater(got["own_cpu_us_per_op"], 0)
        self.assertGreaterEqual(len(self.seconds), 2)
        self.assertAlmostEqual(sum(s["seconds"] for s in self.seconds),
                               got["seconds"], delta=0.01)
        self.assertEqual(sum(s["ops"] for s in self.seconds), got["ops"])
        self.assertAlmostEqual(self.seconds[-1]["at"], got["seconds"],
                               delta=0.01)

    def test_an_interval_is_as_long_as_it_is_said(self):
        got = self.run_json("--requests", "1k", "--interval", "0.02", "--keys",
                            "1k", "--mix", "ping", "--connections", "1",
                            "--rate", "2k")  # half a second
        self.assertGreater(len(self.seconds), 1)
        self.assertLess(min(s["seconds"] for s in self.seconds), 0.5)
        self.assertEqual(sum(s["ops"] for s in self.seconds), got["ops"])

    def test_connections_are_dealt_to_all_addresses(self):
        self.redis.ask("CONFIG", "RESETSTAT")
        got = self.run_json("--to", self.redis.unix, "--connections", "4",
                            "--requests", "400", "--resp3", "--mix", "ping")
        self.assertEqual(got["ops"], 400)
        self.assertEqual(self.redis.calls("hello"), 4 + 2)  # and two probes

    def test_an_open_loop_sends_what_its_schedule_says(self):
        for rate, expected in (("5k", 7500), ("2k..8k", 7500),
                               ("2k,4k,9k", 7500)):
            for arrivals in "constant", "poisson":
                self.redis.ask("CONFIG", "RESETSTAT")
                got = self.run_json("--rate", rate, "--arrivals", arrivals,
                                    "--seconds", "1.5", "--warmup", "0",
                                    "--mix", "incr", "--keys", "10",
                                    "--threads", "2")
                # A starved generator knows which requests it did not send, and
                # which ones a starved server may or may not have received.
                least = self.redis.calls("incr") + got["unsent"]
                delta = (0.01 * expected if arrivals == "constant"
                         else 4 * expected ** 0.5)
                self.assertLessEqual(least, expected + delta)
                self.assertGreaterEqual(least + got["unanswered"],
                                        expected - delta)

    def test_an_open_loop_sends_an_exact_count(self):
        got = self.run_json("--rate", "20k", "--requests", "3001", "--threads",
                            "2", "--mix", "incr")
        self.assertEqual(got["ops"], 3001)

    def test_no_client_is_forgotten_while_its_thread_waits_for_a_core(self):
        """Requests that become due between two readings of the clock: a client
        was once lost this way, in one of three such runs."""
        for _ in range(5):
            got = self.run_json("--rate", "100k", "--requests", "100k",
                                "--connections", "400", "--threads", "8",
                                "--mix", "incr", "--warmup", "0")
            self.assertEqual(got["ops"], 100000)

    def test_each_client_asks_all_addresses_if_requests_are_spread(self):
        self.redis.ask("CONFIG", "RESETSTAT")
        for rate in [], ["--rate", "2k"]:
            got = self.run_json("--to", self.redis.unix, "--connections", "3",
                                "--requests", "300", "--resp3", "--spread",
                                "request", "--mix", "get,set", *rate)
            self.assertEqual(got["ops"], 300)
            self.assertEqual(self.redis.calls("hello"), 3 * 2 + 2)
            self.redis.ask("CONFIG", "RESETSTAT")

    def test_reads_and_writes_go_to_their_addresses(self):
        other = Redis()
        self.addCleanup(other.stop)
        for rate in [], ["--rate", "4k"]:
            self.redis.ask("CONFIG", "RESETSTAT")
            got = self.run_json("--read-from", other.tcp, "--requests", "1000",
                                "--mix", "get:60,set:30,incr:10", "--pipeline",
                                "8", "--warmup", "0", *rate)
            self.assertEqual(got["ops"], 1000)
            self.assertEqual(self.redis.calls("get"), 0)
            self.assertEqual(self.redis.calls("set"), got["kinds"]["set"]["ops"])
            self.assertEqual(other.calls("set"), 0)
            self.assertEqual(other.calls("get"), got["kinds"]["get"]["ops"])
            other.ask("CONFIG", "RESETSTAT")

    def test_repetitions_are_counted_together_and_shown_apart(self):
        self.redis.ask("CONFIG", "RESETSTAT")
        for warmup in self.long_enough():
            self.redis.ask("CONFIG", "RESETSTAT")
            got = self.run_json("--repeat", "3", "--requests", "500",
                                "--preload", "--keys", "100", "--mix", "get",
                                "--warmup", warmup)
            if got["warmup"] is not None:
                break
        self.assertEqual(got["ops"], 1500)
        self.assertEqual(len(got["runs"]), 3)
        self.assertGreater(got["warmup"]["ops_per_s"], 0)
        self.assertEqual(self.redis.calls("set"), 100)  # preloaded once
        rates = [run["ops_per_s"] for run in got["runs"]]
        self.assertLessEqual(min(rates), got["ops_per_s"] * 1.001)
        self.assertGreaterEqual(max(rates) * 1.001, got["ops_per_s"])
        done = load("--to", self.redis.tcp, "--repeat", "3", "--requests",
                    "50", "--warmup", warmup)
        for word in "run 3", "least", "median", "most", "warm-up":
            self.assertIn(word, done.stdout)

    def test_the_longest_unavailability_is_reported(self):
        """One of two servers does not answer for 0.3 s."""
        other = Redis()
        self.addCleanup(other.stop)
        process = subprocess.Popen(
            [QUOIN, "load", "--to", self.redis.tcp, "--to", other.tcp,
             "--seconds", "60", "--warmup", "0", "--rate", "1k", "--mix",
             "get,set", "--json"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        process.stdout.readline()  # the first second is over
        self.redis.ask("CLIENT", "PAUSE", "300")
        self.redis.ask("PING")  # answered after the pause
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        silences = {(s["to"], s["kind"]): s
                    for s in json.loads(out.splitlines()[-1])["unavailability"]}
        for kind in "get", "set", "reads", "writes":
            s = silences[self.redis.tcp, kind]
            self.assertGreaterEqual(s["longest_ms"], 299)
            self.assertGreaterEqual(s["began_s"], 0)
            self.assertLessEqual(silences["all", kind]["longest_ms"],
                                 s["longest_ms"])
            self.assertIn((other.tcp, kind), silences)
        self.assertNotIn(("all", "incr"), silences)

    def one_server_ends(self, *args):
        """Two servers, an open loop; `self.redis` stops, then is killed.
        @return the kinds that are answered in the seconds after each, once
        they are the same three times in a row; and the summary."""
        process = subprocess.Popen(
            [QUOIN, "load", "--to", self.redis.tcp, *args, "--seconds", "120",
             "--warmup", "0", "--rate", "2k", "--mix", "get,set",
             "--connections", "3", "--pipeline", "4", "--json"],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        process.stdout.readline()  # the first second is over
        found = []
        for how in signal.SIGSTOP, signal.SIGKILL:
            self.redis.process.send_signal(how)
            process.stdout.readline()  # the one in which it stopped
            kinds = []
            while len(kinds) < 20 and (len(kinds) < 3 or
                                       kinds[-3:] != kinds[-1:] * 3):
                second = json.loads(process.stdout.readline())
                kinds.append(sorted(second["kinds"]))
            found.append(kinds[-1])
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        return found, json.loads(out.splitlines()[-1])

    def test_reads_go_on_while_the_writes_have_no_server(self):
        """An open loop: readers do not wait for writers."""
        other = Redis()
        self.addCleanup(other.stop)
        found, summary = self.one_server_ends("--read-from", other.tcp)
        self.assertEqual(found, [["get"], ["get"]])
        self.assertGreater(summary["unsent"], 0)

    def test_all_goes_on_with_one_of_two_servers(self):
        """An open loop in which each request chooses a server: none waits for
        the other."""
        other = Redis()
        self.addCleanup(other.stop)
        found, _ = self.one_server_ends("--spread", "request", "--to",
                                        other.tcp)
        self.assertEqual(found, [["get", "set"], ["get", "set"]])

    def test_foreign_values_are_found_wrong(self):
        self.redis.ask("SET", "k000000000000000", "not ours")
        done = load("--to", self.redis.unix, "--keys", "1", "--requests", "5",
                    "--mix", "get")
        self.assertEqual(done.returncode, 1)
        self.assertIn("wrong replies", done.stdout)
        self.assertIn("not ours", done.stdout)
        self.assertIn("--preload", done.stdout)

    def test_error_replies_are_counted_and_the_first_is_shown(self):
        self.redis.ask("CONFIG", "SET", "maxmemory", "1")
        done = load("--to", self.redis.tcp, "--requests", "50", "--mix",
                    "set,ping", "--warmup", "0")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("error replies; the first: OOM", done.stdout)

    def test_lost_connections_are_opened_again(self):
        process = subprocess.Popen(
            [QUOIN, "load", "--to", self.redis.tcp, "--seconds", "30",
             "--connections", "3", "--mix", "ping", "--json", "--verbose"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        process.stderr.readline()  # the first second is over
        self.redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        process.stderr.readline()
        process.send_signal(signal.SIGINT)  # it ends early, with its report
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(json.loads(out.splitlines()[-1])["disconnects"],
                         3)

    def test_a_preload_that_is_refused_says_why(self):
        self.redis.ask("CONFIG", "SET", "maxmemory", "1")
        done = load("--to", self.redis.tcp, "--preload", "--keys", "10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("0 of 10 keys stored; OOM", done.stderr)


class Scripted:
    """A server with a script: `answer(n)` is the bytes for the n-th PING of a
    connection, None ends the connection."""

    def __init__(self, answer):
        self.answer = answer
        self.listening = socket.socket()
        self.listening.bind(("127.0.0.1", 0))
        self.listening.listen(100)
        self.tcp = "127.0.0.1:%d" % self.listening.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                peer, _ = self.listening.accept()
                threading.Thread(target=self.serve, args=(peer,),
                                 daemon=True).start()
        except OSError:  # closed
            pass

    def serve(self, peer):
        asked = 0
        with peer:
            while data := peer.recv(65536):
                for _ in range(data.count(b"PING")):
                    asked += 1
                    said = self.answer(asked)
                    if said is None:
                        return
                    peer.sendall(said)

    def refuse(self):
        """Stops accepting connections."""
        if self.listening.fileno() >= 0:
            self.listening.shutdown(socket.SHUT_RDWR)
            self.listening.close()


class Trouble(unittest.TestCase):
    """Failures are reported, with a status that is not 0."""

    def scripted(self, answer):
        server = Scripted(answer)
        self.addCleanup(server.refuse)
        return server

    def test_an_address_without_an_answer_is_a_failure(self):
        server = self.scripted(lambda n: b"+PONG\r\n")
        with socket.socket() as s:  # bound but not listening
            s.bind(("127.0.0.1", 0))
            dead = f"127.0.0.1:{s.getsockname()[1]}"
            for args in (["--seconds", "2"],  # or until the load gives up
                         ["--requests", "500", "--json"]):
                done = load("--to", server.tcp, "--to", dead, "--mix", "ping",
                            "--connections", "50", *args)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("25 connections were never opened", done.stderr)
                if "--json" in args:
                    summary = json.loads(done.stdout.splitlines()[-1])
                    self.assertEqual(summary["connections"], [
                        {"to": server.tcp, "wanted": 25, "opened": 25},
                        {"to": dead, "wanted": 25, "opened": 0}])
                else:
                    self.assertIn("50 connections (25 of 50 opened)",
                                  done.stdout)
                    self.assertIn(dead + ": 0 of 25 connections opened",
                                  done.stdout)

    def test_a_server_that_ends_in_the_warm_up_is_reported(self):
        def answer(n):
            if n == 100:
                server.refuse()
            return b"+PONG\r\n" if n < 100 else None

        server = self.scripted(answer)
        done = load("--to", server.tcp, "--mix", "ping", "--connections", "1",
                    "--seconds", "0.2", "--warmup", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no request was answered", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_server_that_never_answers_is_reported(self):
        server = self.scripted(lambda n: b"")
        limits = (("load", 2), ("events", 5))
        started = [subprocess.Popen([QUOIN, command, "--to", server.tcp],
                                    stderr=subprocess.PIPE, text=True)
                   for command, _ in limits]
        for process, (_, seconds) in zip(started, limits):
            _, said = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 1)
            self.assertIn(f"{server.tcp}: no answer within {seconds} s",
                          said)

    def test_what_is_not_resp_is_shown(self):
        """It begins correctly; then 40 bytes without an end of line."""
        server = self.scripted(
            lambda n: b"+PONG\r\n" if n < 50 else b"g" * 40)
        done = load("--to", server.tcp, "--mix", "ping", "--connections", "1",
                    "--requests", "200", "--warmup", "0", "--json")
        summary = json.loads(done.stdout.splitlines()[-1])
        self.assertIn("not RESP: 'ggg", summary["first_error"])
        self.assertGreater(summary["disconnects"], 0)


class BadInput(unittest.TestCase):
    def one_line(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_no_server_listens(self):
        with socket.socket() as s:  # bound but not listening
            s.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{s.getsockname()[1]}"
            self.one_line(load("--to", address), 1, address, "refused")
        self.one_line(load("--to", "unix:/nonexistent/s"), 1, "No such file")

    def test_the_server_speaks_another_protocol(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()

            def serve():
                peer, _ = s.accept()
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                peer.close()

            thread = threading.Thread(target=serve)
            thread.start()
            done = load("--to", f"127.0.0.1:{s.getsockname()[1]}")
            thread.join()
            self.one_line(done, 1, "not RESP")

    def test_wrong_options_name_the_nearest(self):
        self.one_line(load("--conections", "5"), 2, "'--connections'")
        self.one_line(load("-h"), 2, "'--help'")
        self.one_line(load("--to", "x:1", "--seconds", "1e300"), 2, "--seconds")
        self.one_line(load("--to", "x:1", "--mix", "gte"), 2, "'get'")
        self.one_line(load("--to", "x:1", "--dist", "zpif"), 2, "'zipf'")
        self.one_line(load("--to", "x:1", "--workload", "ycbs-a"), 2, "'ycsb-a'")
        self.one_line(load("--to", "x:1", "--value-size", "9..5"), 2, "5..9")
        self.one_line(load("--to", "nonsense"), 2, "HOST:PORT")
        for port in "0", "65536", "73737":
            self.one_line(load("--to", f"127.0.0.1:{port}"), 2, "1 to 65535")
        self.one_line(load(), 2, "--to")
        self.one_line(load("--to", "127.0.0.1:1", "--keys", "1m", "--key-size",
                           "5"), 2, "--key-size 7")
        self.one_line(load("--to", "127.0.0.1:1", "--cpu-of", "0"), 2,
                      "--cpu-of")
        self.one_line(load("--to", "127.0.0.1:1", "--rate", "fast"), 2,
                      "--rate")
        self.one_line(load("--to", "127.0.0.1:1", "--rate", "1k..2k",
                           "--requests", "5"), 2, "--seconds")
        self.one_line(load("--to", "127.0.0.1:1", "--arrivals", "poisson"), 2,
                      "--rate")
        self.one_line(load("--to", "127.0.0.1:1", "--arrivals", "x"), 2,
                      "--arrivals")
        self.one_line(load("--to", "127.0.0.1:1", "--spread", "x"), 2,
                      "--spread")
        self.one_line(load("--to", "127.0.0.1:1", "--pin", "0,x"), 2, "--pin")
        self.one_line(load("--to", "127.0.0.1:1", "--pin", "9999"), 2, "--pin")

    def test_help_fits_one_screen(self):
        done = load("--help")
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.splitlines()
        self.assertLessEqual(len(lines), 41)
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_subcommands(self):
        for args, status, text in ((["laod"], 2, "'load'"),
                                   (["frobnicate"], 2, "see quoin --help"),
                                   ([], 0, "load"), (["--version"], 0, "quoin"),
                                   (["load", "--version"], 0, "quoin "),
                                   (["verify", "--version"], 0, "quoin "),
                                   (["events", "--version"], 0, "quoin "),
                                   (["member"], 2, "list, add, remove"),
                                   (["member", "ad"], 2, "list, add, remove"),
                                   (["member", "add"], 2, "--to"),
                                   (["member", "remove", "--to",
                                     "127.0.0.1:1"], 2, "--replica"),
                                   (["member", "list", "--to",
                                     "127.0.0.1:1"], 1, "refused"),
                                   (["bench"], 0, "bench stall"),
                                   (["bench", "--help"], 0, "bench stall"),
                                   (["bench", "stal"], 2, "'bench stall'")):
            done = subprocess.run([QUOIN, *args], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, status)
            self.assertIn(text, done.stdout)


if __name__ == "__main__":
    QUOIN = sys.argv.pop(1)
    unittest.main()
