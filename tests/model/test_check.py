#!/usr/bin/env python3
"""check.py can fail: a good model with an error, one that was not searched to
its end, one that has shrunk, and a defect that does no harm."""
import sys

import check


def verdict(*knobs, bad=False, least=5):
    case = {"model": "seeded_defect", "knobs": list(knobs), "bad": bad, "least": least,
            "how": []}
    passes, states, seen = check.check(case)
    print(passes, states, seen)
    return passes


def main():
    wanted = [
        ("good", True, verdict()),
        ("good, an assertion fails", False, verdict("WRONG")),
        ("good, it cannot end", False, verdict("STUCK")),
        ("good, fewer states than it had", False, verdict(least=1000)),
        ("a defect, found", True, verdict("WRONG", bad=True)),
        ("a defect without consequence", False, verdict(bad=True)),
        ("a defect that only gets stuck", False, verdict("STUCK", bad=True)),
        ("a syntax error", None, verdict("x=5=")),
    ]
    check.DEPTH = 3
    wanted.append(("good, cut off by depth", False, verdict()))
    wrong = [what for what, want, got in wanted if want is not got]
    for what in wrong:
        print("wrong verdict:", what, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
