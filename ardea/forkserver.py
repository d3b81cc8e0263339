"""Makes processes that have Ardea loaded already, for a supervisor (docs/supervisor.md, decision 64; Linux).

``python -P -m ardea.forkserver SOCKET LINK ROOM MODULE ...`` loads the modules, says so on the socket, and answers each
request there, the command line ``python -P -m MODULE ...`` and its variables, with the pid of a process that runs it.
It ends with the supervisor's end of the socket, and when another version has been installed in the place of the one
that it has loaded: a fork would run modules of both.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import socket
import sys
from pathlib import Path
from typing import Any

from ardea import versions
from ardea.errors import ExitCode
from ardea.supervision.forkserver import DESCRIPTORS, MOST_BYTES, OURS, READY

VERSION = Path(versions.__file__)


def main() -> int:
    """Serves until the supervisor is gone; in a process that was asked for, runs it."""
    connection, parent_link, modules = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]), sys.argv[4:]
    _show([*sys.orig_argv[: 1 - len(sys.argv)], *modules])
    for name in modules:
        importlib.import_module(name)
    if len(os.listdir("/proc/self/task")) > 1:  # noqa: PTH208 -- a fork would copy this thread only
        print("a module has started a thread as it was loaded", file=sys.stderr)  # noqa: T201
        return 1
    gc.collect()
    gc.freeze()  # else the first collection in each process would copy all of this
    connection.send(READY)
    try:
        asked = _serve(connection, VERSION.read_bytes())
    except OSError as error:
        print(f"forkserver: no process can be forked: {error}; it ends", file=sys.stderr)  # noqa: T201
        return 1
    if asked is not None:
        connection.close()
        os.close(parent_link)
        _run(*asked)
    return 0


def _serve(connection: socket.socket, loaded: bytes) -> tuple[dict[str, Any], list[int]] | None:
    """In a process that was asked for: the request and its descriptors; in the forkserver: None, at the end.

    ``loaded`` is what the file VERSION said when the modules were loaded.

    Raises:
        OSError: the supervisor is gone in the middle of a request, there is no room for another process, or another
            version has been installed.
    """
    while True:
        request, descriptors, _, _ = socket.recv_fds(connection, MOST_BYTES, DESCRIPTORS)
        if not request:
            return None
        if VERSION.read_bytes() != loaded:
            raise ChildProcessError("another version of Ardea has been installed since it began")
        if not _fork(connection):
            return json.loads(request), descriptors
        for descriptor in descriptors:
            os.close(descriptor)


def _fork(connection: socket.socket) -> bool:
    """Forks a process of its own group, whose parent is gone, so that it is the supervisor's; False: this is it.

    It begins once the supervisor has been sent its pid.  One that the supervisor cannot know ends at once.
    """
    answer, tell = os.pipe()
    begin, release = os.pipe()
    between = os.fork()
    if between:
        os.close(tell)
        os.close(begin)
        os.waitpid(between, 0)  # who begins finds the supervisor as its parent
        if not (pid := os.read(answer, 32)):
            raise ChildProcessError("it has ended before it told its pid")
        connection.send(pid)
        with contextlib.suppress(BrokenPipeError):  # it was killed; its parent will see that
            os.write(release, b"b")
        os.close(answer)
        os.close(release)
        return True
    if os.fork():
        os._exit(0)
    os.setpgid(0, 0)
    os.close(answer)
    os.close(release)
    os.write(tell, str(os.getpid()).encode())
    os.close(tell)
    if not os.read(begin, 1):
        os._exit(ExitCode.TEMPORARY)
    os.close(begin)
    return False


def _run(request: dict[str, Any], descriptors: list[int]) -> None:
    """What ``python -P -m`` does."""
    argv: list[str] = request["argv"]
    *parent_link, output = descriptors
    for name in [name for name in os.environ if name.startswith(OURS)]:
        del os.environ[name]
    os.environ.update(request["env"], ARDEA_PARENT_LINK=",".join(map(str, parent_link)))
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    importlib.invalidate_caches()  # a folder that was not there when the forkserver began may be there now
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed()  # Python's own generator sees to that itself
    _show(argv)
    module = argv[argv.index("-m") + 1]
    sys.argv, sys.orig_argv = argv[argv.index("-m") + 1 :], argv
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _show(argv: list[str]) -> None:
    """In the place of the command line that the kernel shows, whose room the argument ROOM has made."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b") ")[2].split()
    start, end = int(fields[48 - 3]), int(fields[49 - 3])
    text = b"".join(os.fsencode(argument) + b"\0" for argument in argv)[: end - start - 1]
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


if __name__ == "__main__":
    sys.exit(main())
