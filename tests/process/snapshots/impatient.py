"""``python impatient.py MODULE ARGUMENTS``: ``python -m MODULE ARGUMENTS``, where nothing waits long to start again.

Hundreds of kills would spend their hours in back-offs.
"""

from __future__ import annotations

import runpy
import sys

import ardea.supervision.supervisor_state

if __name__ == "__main__":
    ardea.supervision.supervisor_state.BACKOFF = (0.0, 0.1, 0.2)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
