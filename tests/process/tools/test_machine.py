"""`quoin machine`: measured, shown, written in all formats; wrong input is
refused.

Usage: test_machine.py QUOIN DATA [NAME...]
"""
import csv
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

from tests.process.lib.checks import check, main

QUOIN, DATA = sys.argv[1:3]
CORES = len(os.sched_getaffinity(0))


def quoin(*args, status=0, cores=None):
    def restrict():
        if cores is not None:
            os.sched_setaffinity(0, cores)
    done = subprocess.run([QUOIN, "machine", *args], capture_output=True,
                          text=True, preexec_fn=restrict)
    assert done.returncode == status, "%r: %d: %s" % (args, done.returncode,
                                                      done.stderr)
    return done


def measures(*args):
    """@return False if other processes hold the cores all the time."""
    done = subprocess.run([QUOIN, "machine", *args, "--seconds", "0.2"],
                          capture_output=True, text=True)
    if (done.returncode == 1 and
            "a core was busy with another process" in done.stderr):
        return False
    check(done.stderr, done.returncode, 0)
    return True


def refuses(*args, text):
    done = quoin(*args, status=2)
    check("nothing on stdout", done.stdout, "")
    check("one line", len(done.stderr.splitlines()), 1)
    assert text in done.stderr, done.stderr


def test_this_machine_is_measured_and_read_back():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/m.json"
        if not measures("--measure", "-o", path):
            check("files", os.listdir(folder), [])
            return
        m = json.load(open(path))
        check("cores", len(m["cores"]), CORES)
        if CORES > 1:
            check("version", m["version"], 2)
            check("transport", m["transport"], "ump")
            assert 0 < m["queued_factor"] <= 1, m["queued_factor"]
            assert all(m["send"][i][j] > 0 for i in range(CORES)
                       for j in range(CORES) if i != j)
        text = quoin(path).stdout
        assert text.startswith(m["name"]), text
        again = quoin(path, "--format", "json").stdout
        check("read back", json.loads(again), m)


def test_all_forms_of_a_folder():
    with tempfile.TemporaryDirectory() as folder:
        source = DATA + "/threadripper_1950x_1x16"
        text = quoin(source).stdout
        assert "16 cores, 1 socket, 2 memory nodes, 4 caches" in text, text
        quoin(source, "--format", "csv", "-o", folder + "/copy")
        for name in "numa.csv", "pairwise.csv":
            rows = [list(csv.reader(open(f + "/" + name)))
                    for f in (source, folder + "/copy")]
            check(name, len(rows[0]), len(rows[1]))
            check(name, rows[0][0], rows[1][0])
        quoin(folder + "/copy", "-o", folder + "/m.json")
        quoin(folder + "/copy", "--format", "json", "-o", folder + "/m.json")
        m = json.load(open(folder + "/m.json"))
        check("name", m["name"], "threadripper_1950x_1x16")
        quoin(folder + "/m.json", "-o", folder + "/m.svg")
        svg = xml.etree.ElementTree.parse(folder + "/m.svg")
        check("stdout", quoin(folder + "/m.json", "-o", "-").stdout, text)
        assert not os.path.exists("-")
        assert svg.getroot().tag.endswith("svg")
        with open(folder + "/m.json") as f:
            piped = subprocess.run([QUOIN, "machine", "/dev/stdin"],
                                   input=f.read(), capture_output=True,
                                   text=True)
        check("a machine from a pipe", piped.stdout, text)


def test_a_report_has_no_names():
    with tempfile.TemporaryDirectory() as folder:
        report = folder + "/report"
        if not measures("--gather", "-o", report):
            check("files", os.listdir(folder), [])
            return
        want = {"machine.json", "machine.txt", "facts.txt", "topology.xml"}
        want |= {"machine.svg"} if CORES > 1 else set()
        check("files", set(os.listdir(report)), want)
        everything = "".join(open(report + "/" + f).read() for f in want)
        host = socket.gethostname()
        assert len(host) < 6 or host not in everything, host
        assert "HostName" not in everything
        assert "kernel: Linux" in everything
        lines = [quoin(what).stdout.splitlines()[0]
                 for what in (report + "/topology.xml", "live")]
        check("processor in the XML", *(line.split(":", 1)[1] for line in lines))
        refuses("--gather", "-o", report, text="the folder is not empty")


def test_one_core_is_reported():
    one = {min(os.sched_getaffinity(0))}
    done = quoin("--measure", cores=one)
    assert "only one core is usable" in done.stderr, done.stderr
    assert "the machine has one core" in done.stdout, done.stdout


def test_interrupted_it_leaves_nothing():
    with tempfile.TemporaryDirectory() as folder:
        for wanted in ("--measure", "-o", folder + "/m.json"), \
                ("--gather", "-o", folder + "/report"):
            if CORES == 1:
                continue
            p = subprocess.Popen([QUOIN, "machine", *wanted],
                                 stderr=subprocess.PIPE, text=True)
            while True:  # until its threads run
                if len(os.listdir("/proc/%d/task" % p.pid)) > CORES:
                    break
                assert p.poll() is None, p.stderr.read()
                time.sleep(0.001)
            p.send_signal(signal.SIGINT)
            p.communicate()
            check("ended by the signal", p.returncode, -signal.SIGINT)
            check("files", os.listdir(folder), [])


def test_mistakes_are_one_line():
    with tempfile.TemporaryDirectory() as folder:
        bad = folder + "/bad.json"
        with open(bad, "w") as f:
            f.write('{"format": "quoin-machine", "version": 2,\n'
                    '"name": "", "units": "cycles", "queued_factor": 7,\n'
                    '"cores": [{"core": 0, "phys": 0, "cache": 0, "node": 0,'
                    ' "socket": 0}], "send": [[0]], "receive": [[0]]}')
        refuses(bad, text=bad + ":2: queued_factor: write a number")
        xml_file = folder + "/bad.xml"
        with open(xml_file, "w") as f:
            f.write("<?xml version='1.0'?>\n<topology version='2.0'><obj")
        refuses(xml_file, text=xml_file + ":2: XML: unclosed token; the file may be cut")
    refuses(DATA + "/syn_8x4x1/numa.csv",
            text="numa.csv:1: neither a machine file (JSON) nor hwloc's XML")
    refuses("--measure", "-o", "", text="--output: '': No such file")
    refuses("/nowhere", text="/nowhere: No such file or directory")
    refuses("core:x", text="core:x: hwloc does not understand this")
    refuses("core:4 pu:1", "--format", "svg", text="no costs to write")
    refuses("core:4 pu:1", "--measure", text="only this machine")
    refuses("--measure", "-o", "/nowhere/m.json", text="No such file")
    refuses("--measure", "-o", "/tmp", text="/tmp is a folder; name a file")
    refuses("--format", "png", text="--format")
    refuses("--format", "csv", text="--format csv needs --output FOLDER")
    refuses("core:4 pu:1", "-o", "x.csv", text="x.csv: unknown extension")
    refuses("core:4 pu:1", "-o", "x.png", text="x.png: unknown extension")
    refuses("core:4 pu:1", "--seconds", "1", text="need --measure")
    refuses("core:4 pu:1", "--parallel", "0", text="need --measure")
    refuses("core:4 pu:1", "--format", "csv", "-o", "/dev/null",
            text="/dev/null is not a folder")
    for args in ["--format", "csv"], ["--gather"]:
        refuses(*args, "-o", "-", text=" needs --output FOLDER")
    refuses("--gather", text="--gather needs --output FOLDER")
    refuses("--gather", "-o", "/nowhere/x", text="/nowhere/x: cannot write")
    refuses("--mesure", text="did you mean '--measure'?")


main(sys.argv[3:], globals())
