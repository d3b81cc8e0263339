"""A supervised process that prints what it finds itself to be, as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import threading
from pathlib import Path

from ardea import parent_link

OWN = ("ARDEA_FOLDER", "ARDEA_SUPERVISOR_ID", "SUPERVISED_IN")


def main() -> int:
    parent_link.attach()
    own = os.getpid()
    shown = Path("/proc/self/cmdline").read_bytes().rstrip(b"\0").decode().split("\0")
    found = {
        "argv": sys.argv,
        "orig_argv": sys.orig_argv,
        "cmdline": shown,
        "name": __name__,
        "main": sys.modules["__main__"].__spec__.name,
        "leads": os.getpgid(0) == own,
        "session": os.getsid(0) == os.getsid(os.getppid()),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "stdin": sys.stdin.read(),
        "descriptors": _descriptors(),
        "variables": {name: value for name, value in os.environ.items() if name not in OWN},
        "path": sys.path,
        "signals": {each.name: str(signal.getsignal(each)) for each in signal.Signals},
        "directory": str(Path.cwd()),
    }
    print(json.dumps({"same": found, "loaded": "numpy" in sys.modules, "parent": os.getppid(), "drawn": _drawn()}))
    return parent_link.ended(0)


def _descriptors() -> list[str]:
    """The name of each file, ``pipe`` for a pipe."""
    found = []
    for number in range(256):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/self/fd/{number}").readlink().name.partition(":")[0])
    return sorted(found)


def _drawn() -> list[float]:
    numpy = sys.modules.get("numpy")
    return [random.random(), *([numpy.random.random()] if numpy else [])]


if __name__ == "__main__":
    sys.exit(main())
