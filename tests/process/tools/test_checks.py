"""The runner of the tests of whole servers: each failure says what was expected
and what was seen, and where.

Usage: test_checks.py
"""
import contextlib
import io
import sys
import unittest
import unittest.mock

from tests.process.lib import checks


class Server:
    status = 3


def test_empty():
    q, want = Server(), {"status": 0}
    assert q.status == want["status"]


def test_empty_of_several_lines():
    q, want = Server(), [0,
                         4]
    assert (q.status in  # the first is no end
            want)


def test_never():
    with unittest.mock.patch.object(checks, "DEADLINE", 0.01):
        checks.wait_until("a share", lambda: False)


def test_empty_with_a_call():
    left = [1]
    assert left.pop() == 2


def test_text():
    checks.check("answer", 41, 42)


def test_exit():
    sys.exit(0)


def test_passes():
    return "a note"


class Failures(unittest.TestCase):
    def run_main(self, *names):
        """The status and the lines of a run."""
        out = io.StringIO()
        with contextlib.redirect_stdout(out), self.assertRaises(SystemExit) as e:
            checks.main(list(names), globals())
        return int(e.exception.code), out.getvalue().splitlines()

    def failure(self, name):
        status, (line, count) = self.run_main(name)
        self.assertEqual(status, 1)
        self.assertEqual(count, "0 passed, 1 failed")
        return line.split("FAILED: ")[1]

    def test_an_assertion_without_text_is_shown_with_its_values(self):
        said = self.failure("test_empty")
        self.assertRegex(said, r"^test_checks.py:\d+: AssertionError: expected: ")
        self.assertIn("assert q.status == want['status']", said)
        self.assertIn("q.status is 3", said)
        self.assertIn("want['status'] is 0", said)

    def test_an_assertion_of_several_lines_is_shown_in_one(self):
        self.assertRegex(self.failure("test_empty_of_several_lines"),
                         r"expected: assert q\.status in want; seen: "
                         r"q\.status is 3, want is \[0, 4\]$")

    def test_a_wait_says_how_long_it_was(self):
        self.assertRegex(self.failure("test_never"),
                         r"AssertionError: never in 0\.01 s: a share$")

    def test_no_call_is_made_again(self):
        said = self.failure("test_empty_with_a_call")
        self.assertIn("assert left.pop() == 2", said)
        self.assertNotIn("seen", said)

    def test_a_text_is_said(self):
        self.assertRegex(self.failure("test_text"),
                         r"^test_checks.py:\d+ > checks.py:\d+: "
                         "AssertionError: answer: got 41, want 42$")

    def test_a_test_that_ends_the_program_has_failed(self):
        self.assertRegex(self.failure("test_exit"),
                         r"^test_checks.py:\d+: SystemExit: .* with status 0$")

    def test_a_test_that_is_not_there_has_failed(self):
        self.assertRegex(self.failure("test_nowhere"),
                         r"^checks.py:\d+: KeyError: 'test_nowhere'$")

    def test_the_others_run(self):
        status, lines = self.run_main("test_exit", "test_passes")
        self.assertEqual(status, 1)
        self.assertIn("ok: a note", lines[1])
        self.assertEqual(lines[2], "1 passed, 1 failed")


unittest.main()
