"""The supervisor's end of :mod:`ardea.forkserver`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ardea.supervision import kernel

READY = b"ready"
MOST_BYTES = 1 << 16
"""Of a request."""
DESCRIPTORS = 4
"""That come with it: parent link, beats and lock, which go into ARDEA_PARENT_LINK, and the output."""
OURS = "ARDEA_"
"""Variables of these names differ from process to process; all others are the forkserver's own."""
_COMMAND = (sys.executable, "-P", "-m")
_ROOM = "-" * 4096
"""An argument, in whose place each process shows its own."""
_ANSWERS_WITHIN = 2.0


@dataclass(slots=True)
class Forked:
    """A child that was forked elsewhere, as ``subprocess.Popen`` shows one."""

    pid: int
    returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None: it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int:
        """As :meth:`poll`, once it has ended."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def send_signal(self, number: signal.Signals, /) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)


class Forkserver:
    """Has ``modules`` loaded, and forks processes that share what is loaded.

    They share it as long as nobody writes there: they start in a tenth of the time, and several of them on one core
    leave each other more of its caches.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, modules: Sequence[str], env: Mapping[str, str]) -> None:
        self._env = _others(env)
        self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._connection.settimeout(_ANSWERS_WITHIN)
        parent_link, self._parent_link = os.pipe()
        self.ready = False
        try:
            self._popen = subprocess.Popen(
                [*_COMMAND, "ardea.forkserver", str(theirs.fileno()), str(parent_link), _ROOM, *modules],
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), parent_link),
                **kernel.apart(),
            )
            with contextlib.suppress(ProcessLookupError):
                kernel.arm_parent_link(parent_link, self._popen.pid)
        except OSError:
            self._connection.close()
            os.close(self._parent_link)
            raise
        finally:
            theirs.close()
            os.close(parent_link)

    @property
    def pid(self) -> int:
        """Of the process that forks."""
        return self._popen.pid

    def fileno(self) -> int:
        """Readable when it is ready, or has ended."""
        return self._connection.fileno()

    def hear(self) -> bool:
        """What can be read; False: it has ended."""
        with contextlib.suppress(ConnectionError):
            if self._connection.recv(MOST_BYTES) == READY:
                self.ready = True
                return True
        return False

    def can_fork(self, argv: Sequence[str], env: Mapping[str, str]) -> bool:
        """Whether that process may be forked: Python itself starts otherwise in another environment."""
        return self.ready and tuple(argv[: len(_COMMAND)]) == _COMMAND and _others(env) == self._env

    def fork(self, argv: Sequence[str], env: Mapping[str, str], parent_link: Sequence[int], output: int) -> Forked:
        """Starts a process, which becomes this one's child.

        Raises:
            OSError: it cannot be started from here.
        """
        ours = {name: value for name, value in env.items() if name.startswith(OURS)}
        request = json.dumps({"argv": list(argv), "env": ours}).encode()
        if len(request) > MOST_BYTES:
            raise OSError(f"a command of {len(request)} bytes")
        descriptors = [*parent_link, output]
        assert len(descriptors) == DESCRIPTORS
        socket.send_fds(self._connection, [request], descriptors)
        try:
            answer = self._connection.recv(MOST_BYTES)
        except TimeoutError:
            self._connection.shutdown(socket.SHUT_RDWR)  # whose pid has not come before this never begins
            answer = self._connection.recv(MOST_BYTES)
            if not answer:
                raise
        if not answer:
            raise ConnectionError("it has ended")
        return Forked(int(answer))

    def close(self) -> None:
        """Ends it; what it has forked goes on."""
        self._connection.close()
        os.close(self._parent_link)
        self._popen.kill()
        self._popen.wait()


def _others(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(OURS)}
