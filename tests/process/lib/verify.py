"""`quoin load --verify` on the ports of all replicas, for tests."""
import json
import signal
import subprocess


class VerifiedLoad:
    """A load on the ports of all replicas; its verdict covers all requests
    between begin and end."""

    def __init__(self, q, quoin, *args, to=None):
        """to: ports, instead of those of all replicas."""
        where = q.to() if to is None else \
            [a for p in to for a in ("--to", "127.0.0.1:%d" % p)]
        self.process = subprocess.Popen(
            [quoin, "load", *where, "--keys", "50", "--warmup", "0", "--seconds",
             "600", "--verify", "--json", *args],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def second(self):
        return json.loads(self.process.stdout.readline())

    def answered(self, count):
        """Waits for this many more seconds with an answer."""
        while count > 0:
            count -= self.second()["ops"] > 0

    def end(self):
        """@return the summary, the verdict, and the exit status."""
        self.process.send_signal(signal.SIGINT)
        out, text = self.process.communicate()
        return json.loads(out.splitlines()[-1]), text, self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()
