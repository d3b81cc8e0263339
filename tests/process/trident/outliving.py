"""``python outliving.py LINK ARGUMENTS``: python with these arguments, which lives on when its supervisor kills it.

Like a process on a machine that was cut off.  It lives as long as somebody writes to the fifo LINK.
"""

from __future__ import annotations

import os
import subprocess
import sys


def main() -> int:
    _, beats, lock = os.environ["ARDEA_PARENT_LINK"].split(",")
    parent_link = os.open(sys.argv[1], os.O_RDONLY)
    os.environ["ARDEA_PARENT_LINK"] = f"{parent_link},{beats},{lock}"
    fds = (parent_link, int(beats), int(lock))
    with subprocess.Popen([sys.executable, *sys.argv[2:]], pass_fds=fds, start_new_session=True) as process:
        return process.wait()


if __name__ == "__main__":
    sys.exit(main())
