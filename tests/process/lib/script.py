"""Shared by scripts that are run by hand: the programs they run, Ctrl-C, and
results in a file.

    p = script.parser(__doc__)      with --quoind and --quoin
    p.add_argument(...)
    o = script.options(p)
    sys.exit(script.end(lambda: rows of figures, o))
"""
import argparse
import json
import os
import shutil
import signal
import sys

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "../../../build/release")


def parser(text):
    """A parser that shows the module's text, with the options for the
    programs.
    """
    p = argparse.ArgumentParser(
        description=text, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quoind", default=BUILD + "/kvs/quoind")
    p.add_argument("--quoin", default=BUILD + "/loadgen/quoin")
    return p


def options(p, *more):
    """The parsed options; the programs, and those that the options `more`
    name, exist."""
    o = p.parse_args()
    for name in ("quoind", "quoin", *more):
        program = getattr(o, name)
        if shutil.which(program) is None:
            p.error("%s is not a program; build it, or name another" % program)
        setattr(o, name, os.path.abspath(shutil.which(program)))
    return o


def end(run, o):
    """Runs it; its results go to the file of --json.

    @return the figures. Ctrl-C and SIGTERM end the script, with status 130,
    after everything it has started.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        found = run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(found, f, indent=1)
    return found
