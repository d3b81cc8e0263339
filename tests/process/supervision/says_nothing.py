"""A module with which a forkserver does not get round to telling the pid of what it has forked."""

import os
import threading

os.waitpid = lambda *_: threading.Event().wait()
