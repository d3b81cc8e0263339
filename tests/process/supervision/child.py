"""A supervised process for the tests: ``child.py MODE [ARG]``."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ardea import parent_link


def beat_until(stopped: threading.Event) -> None:
    while not stopped.wait(0.05):
        parent_link.beat(in_user_code=False)


def main(mode: str, *args: str) -> int:
    parent_link.attach()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    parent_link.beat(in_user_code=False)
    match mode:
        case "serve":  # until SIGTERM, then exit with the code asked for
            print("serving", flush=True)
            beat_until(stopped)
            return parent_link.ended(int(args[0])) if args else 0
        case "deaf":  # to SIGTERM
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("serving", flush=True)
            beat_until(threading.Event())
        case "exit":
            parent_link.report("the configuration names no topology\n")
            return parent_link.ended(int(args[0]))
        case "parent":  # of a process that user code started and forgot
            sleeper = subprocess.Popen(["sleep", "300"])
            Path(args[0]).write_text(str(sleeper.pid))
            beat_until(stopped)
            sleeper.kill()
        case "hold":  # the interpreter lock, inside user code, for ever
            parent_link.beat(in_user_code=True)
            sum(itertools.repeat(0))
        case "hang":  # with the lock held by nobody: idle inside user code
            parent_link.beat(in_user_code=True)
            threading.Event().wait()
        case "wait":  # inside one call of user code, with the loop alive
            while not stopped.wait(0.05):
                parent_link.beat(in_user_code=True, same_call=True)
        case "eat":
            hoard = b"x" * int(args[0])
            beat_until(stopped)
            return len(hoard)
        case "once":  # die the first time, end well the second
            print(f"life {parent_link.life()} runs")
            return parent_link.ended(0 if parent_link.life() > 1 else 1)
        case "threads":  # of libraries for arrays
            print(*(os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "OPENBLAS", "MKL")), flush=True)
            return parent_link.ended(0)
        case "print":
            for number in range(int(args[0])):
                if number % 2:
                    print(f"line {number}")
                else:
                    os.write(2, b"line %d\n" % number)
            sys.stdout.write("half a line")
            return parent_link.ended(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
