"""What bench_rows.py makes of its runs: medians, intervals, targets.

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
            "cpu_us_per_op": cpu}


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


if __name__ == "__main__":
    unittest.main()
