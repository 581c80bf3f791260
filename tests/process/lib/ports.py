"""TCP ports for a server that a test starts, reserved from other tests."""
import random
import socket

TRIES = 200


class Ports:
    """`count` ports in a row, from `first`, that have no listener. Until
    close() no other Ports has one of them: between this check and the server's
    own bind other tests may check, too, and their clients would connect to it.
    """

    def __init__(self, count):
        for _ in range(TRIES):
            # Below the kernel's range for clients, where thousands of closed
            # connections may linger.
            self.first = random.randrange(10000, 32000 - count)
            self.claims = []
            try:
                for port in range(self.first, self.first + count):
                    self.claim(port)
                return
            except OSError:
                self.close()
        raise RuntimeError("no free ports")

    def claim(self, port):
        claim = socket.socket(socket.AF_UNIX)
        self.claims.append(claim)
        claim.bind("\0quoin-test-port-%d" % port)
        with socket.socket() as s:
            # Remains of closed connections do not count, as for the server.
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", port))

    def close(self):
        for claim in self.claims:
            claim.close()
