"""Results of bench_rows.py: medians, intervals, targets.

Usage: test_bench_server.py FOLDER_OF_IT
"""
import random
import statistics
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
import bench_rows as bench  # noqa: E402


def run(ops, p50=10.0, cpu=1.0):
    return {"ops_per_s": ops, "latency_us": {"p50": p50, "p99": 2 * p50},
            "cpu_us_per_op": cpu, "errors": 0, "wrong": 0, "unanswered": 0,
            "misses": 0}


class Intervals(unittest.TestCase):
    def test_known_order_statistics(self):
        self.assertEqual(bench.interval(list(range(1, 21))), (10.5, 6, 15))
        self.assertEqual(bench.interval(list(range(1, 8))), (4, 1, 7))
        self.assertEqual(bench.interval([3]), (3, 3, 3))

    def test_they_hold_the_median_nineteen_times_in_twenty(self):
        rng = random.Random(1)
        for n in 7, 20, 41:
            held = 0
            for _ in range(2000):
                _, low, high = bench.interval(
                    [rng.expovariate(1) for _ in range(n)])
                held += low <= 0.693147 <= high
            self.assertGreater(held / 2000, 0.94, n)


class Targets(unittest.TestCase):
    def row(self, ours, theirs, *targets):
        row = bench.Row("row", "set", 16, targets=targets)
        row.a, row.b = ours, theirs
        return row

    def test_the_median_of_the_pairs_ratios_decides(self):
        # Ratios 0.5, 2, 3; that of the medians would be 1.
        row = self.row([run(50), run(200), run(300)],
                       [run(100), run(100), run(100)],
                       ("ops", ">=", 2), ("ops", ">=", 2.1))
        self.assertEqual(bench.missed([row], [], None), ["row: ops >= 2.1"])

    def test_of_time_and_cpu_less_is_better(self):
        row = self.row([run(1, p50=31, cpu=4)], [run(1, p50=10, cpu=2)],
                       ("p50", "<=", 3), ("cpu", "<=", 2))
        self.assertEqual(bench.missed([row], [], None), ["row: p50 <= 3"])

    def test_every_target_of_the_table_stands_in_a_row(self):
        found = {(row.name, figure, bound) for row in bench.all_rows()
                 for figure, _, bound in row.targets}
        for p in "16", "64":
            for name, least in ("GET", 1.0), ("SET", 0.7), ("80/20", 0.9):
                self.assertIn((f"{name} P={p}", "ops", least), found)
        for name, p, most in (("GET", 16, 1.0), ("SET", 16, 2.2),
                              ("GET", 1, 1.2), ("SET", 1, 4)):
            self.assertIn((f"{name} P={p}", "cpu", most), found)
        self.assertIn(("SET P=1, 1 connection", "p50", 3), found)

        for name, figure, bound in (("SET P=16, 1 KiB", "ops", 0.95),
                                    ("SET P=16, 64 KiB", "ops", 0.7),
                                    ("SET P=16, 64 KiB", "cpu", 2.5),
                                    ("SET P=16, 64 KiB", "p99", 3),
                                    ("SET P=1, 1 MiB", "ops", 0.6)):
            self.assertIn((name, figure, bound), found)

    def test_without_an_answer_a_target_is_missed(self):
        silent = dict(run(0), cpu_us_per_op=None,
                      latency_us={"p50": None, "p99": None})
        row = self.row([silent], [run(100)], ("p99", "<=", 3), ("ops", ">=", 1))
        self.assertEqual(len(bench.missed([row], [], None)), 2)
        bench.print_row(row)

    def test_a_stop_is_compared_with_what_runs_around_it(self):
        stops = {"row": "stops", "running": [run(100), run(300), run(100)],
                 "stopped": [run(180), run(100)], "catch_up_s": [1, 1]}
        self.assertEqual(bench.stop_ratios(stops), [0.9, 0.5])
        self.assertEqual(len(bench.missed([], [], stops)), 1)
        stops["stopped"][1] = run(180)
        self.assertEqual(bench.missed([], [], stops), [])
        self.assertEqual(statistics.median(bench.stop_ratios(stops)), 0.9)

    def test_facts_say_themselves_whether_they_are_met(self):
        facts = [("a", 1, 2, "<= 1", True), ("b", 2, 2, "<= 1", False)]
        self.assertEqual(bench.missed([], facts, None), ["b"])


class Sizes(unittest.TestCase):
    def test_every_size_has_rows_that_fit_into_memory(self):
        rows = bench.all_rows()
        self.assertEqual({r.value_size for r in rows}, set(bench.SIZES))
        for r in rows:
            self.assertLessEqual(r.value_size * r.keys, 128 << 20, r.name)
            self.assertLessEqual(r.value_size * r.connections * r.pipeline,
                                 128 << 20, r.name)
            self.assertGreaterEqual(r.connections, 1, r.name)

    def test_they_are_named_as_people_say_them(self):
        self.assertEqual(bench.parse_sizes("16,1ki,64KI, 1mi"),
                         [16, 1024, 65536, 1 << 20])
        for wrong in "", "16,", "x", "1kk", "17", "-1", "1gi":
            with self.assertRaises(ValueError, msg=wrong):
                bench.parse_sizes(wrong)


class Counted(unittest.TestCase):
    def test_all_that_was_not_answered_right_is_an_error(self):
        row = bench.Row("row", "set", 1)
        row.a = [dict(run(1), errors=1, wrong=2), dict(run(1), misses=4)]
        row.b = [dict(run(1), unanswered=8)]
        row.failed = [16, 0]
        self.assertEqual(row.errors(), [23, 8])

    def test_of_each_process_the_most_is_kept(self):
        row = bench.Row("row", "set", 1)
        row.weigh(0, [{"anon": 5, "shmem": 1, "used": 2}])
        row.weigh(0, [{"anon": 3, "shmem": 4, "used": 2},
                      {"anon": 7, "shmem": 0, "used": 1}])
        self.assertEqual(row.weights[0], [{"anon": 5, "shmem": 4, "used": 2},
                                          {"anon": 7, "shmem": 0, "used": 1}])


if __name__ == "__main__":
    unittest.main()
