"""A program where the stacks of 64 threads do not fit in its address space."""
import resource
import subprocess


def limit():
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
    resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))


def run(program, *args):
    """@return a CompletedProcess; None: the program does not start so, as with
    a sanitizer."""
    if subprocess.run([program, "--version"], preexec_fn=limit,
                      stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode != 0:
        return None
    return subprocess.run([program, *args], preexec_fn=limit, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
