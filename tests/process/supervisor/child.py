"""A supervised process for the tests: ``child.py MODE [ARG]``."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from ardea import leash


def beat_until(stopped: threading.Event) -> None:
    while not stopped.wait(0.05):
        leash.beat(in_user_code=False)


def main(mode: str, *args: str) -> int:
    leash.attach()
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    leash.beat(in_user_code=False)
    match mode:
        case "serve":  # until SIGTERM, then exit with the code asked for
            print("serving", flush=True)
            beat_until(stopped)
            return leash.ended(int(args[0])) if args else 0
        case "deaf":  # to SIGTERM
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("serving", flush=True)
            beat_until(threading.Event())
        case "exit":
            leash.report("the configuration names no topology\n")
            return leash.ended(int(args[0]))
        case "parent":  # of a process that user code started and forgot
            sleeper = subprocess.Popen(["sleep", "300"])
            Path(args[0]).write_text(str(sleeper.pid))
            beat_until(stopped)
            sleeper.kill()
        case "hold":  # the interpreter lock, inside user code, for ever
            leash.beat(in_user_code=True)
            sum(itertools.repeat(0))
        case "hang":  # with the lock held by nobody: idle inside user code
            leash.beat(in_user_code=True)
            threading.Event().wait()
        case "wait":  # inside one call of user code, with the loop alive
            while not stopped.wait(0.05):
                leash.beat(in_user_code=True, same_call=True)
        case "eat":
            hoard = b"x" * int(args[0])
            beat_until(stopped)
            return len(hoard)
        case "once":  # die the first time, end well the second
            print(f"life {leash.life()} runs")
            return leash.ended(0 if leash.life() > 1 else 1)
        case "threads":  # of libraries for arrays
            print(*(os.environ.get(f"{name}_NUM_THREADS") for name in ("OMP", "OPENBLAS", "MKL")), flush=True)
            return leash.ended(0)
        case "print":
            for number in range(int(args[0])):
                if number % 2:
                    print(f"line {number}")
                else:
                    os.write(2, b"line %d\n" % number)
            sys.stdout.write("half a line")
            return leash.ended(0)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
