"""How a spout task finds its driver, on whatever machine: it says by a tuple where it listens, and is told.

The tuple goes on the spout's stream ``driver`` and carries an address and a token; the driver answers with its own.
From then on a thread mirrors the driver's index into a folder of the task's.
"""

from __future__ import annotations

import contextlib
import secrets
import selectors
import socket
import threading
import time
from pathlib import Path
from queue import SimpleQueue

import msgspec
import xxhash

from ardea.errors import UserError, printable
from ardea.spark.access import INDEX_ID, Access
from ardea.spark.index import INDEX
from ardea.spark.job import PROGRESS

_WITHIN = 2.0
"""Seconds in which a connection and its line have to come."""
_LINE = 4096
"""Bytes of a line, at most."""
_CALLERS = 64
"""Connections without their line at a time; with another one the oldest is closed."""
_AGAIN = 0.2
"""Seconds until a driver that was not reached is told again."""


class DriverCall(msgspec.Struct, frozen=True):
    """What the driver sends to a spout task: the task's token, and where the driver is."""

    token: str
    driver: Access


def tell(task: Access, driver: Access) -> None:
    """The driver's part; OSError if the task is not there."""
    host, _, port = task.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_WITHIN) as connection:
        connection.sendall(msgspec.json.encode(DriverCall(task.token, driver)) + b"\n")


class Callers:
    """Reads one line from each connection, of all of them at once: a slow one does not keep the others waiting.

    Args:
        server: what they connect to; closed by :meth:`close`.
        within: seconds that a connection has for its whole line.
    """

    def __init__(self, server: socket.socket, within: float = _WITHIN) -> None:
        self._server, self._within = server, within
        self._selector = selectors.DefaultSelector()
        self._open: dict[socket.socket, tuple[float, bytearray]] = {}  # the oldest first: until when, and what it sent
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ)

    def lines(self, seconds: float) -> list[bytes]:
        """The lines that are complete; waits for the first byte of anybody for so many seconds."""
        found = []
        for key, _ in self._selector.select(seconds):
            if key.fileobj is self._server:
                self._admit()
            elif (line := self._read(key.data)) is not None:
                found.append(line)
        now = time.monotonic()
        for caller in [caller for caller, (until, _) in self._open.items() if until <= now]:
            self._drop(caller)
        return found

    def close(self) -> None:
        """Closes all of them, and the server."""
        for caller in list(self._open):
            self._drop(caller)
        self._selector.close()
        self._server.close()

    def _admit(self) -> None:
        room = len(self._open) < _CALLERS
        try:
            caller, _ = self._server.accept()
        except BlockingIOError:
            return  # it went away again
        except OSError:
            room = False  # no descriptor is left: the next one gets that of the oldest
        else:
            caller.setblocking(False)
            self._open[caller] = time.monotonic() + self._within, bytearray()
            self._selector.register(caller, selectors.EVENT_READ, caller)
        if not room and self._open:
            self._drop(next(iter(self._open)))

    def _read(self, caller: socket.socket) -> bytes | None:
        """Its line, once that is there."""
        if caller not in self._open:
            return None  # it made room
        _, text = self._open[caller]
        with contextlib.suppress(OSError):
            text += (piece := caller.recv(_LINE))
            if piece and len(text) <= _LINE and b"\n" not in piece:
                return None
        self._drop(caller)
        line, end, _ = text.partition(b"\n")
        return bytes(line) if end else None

    def _drop(self, caller: socket.socket) -> None:
        del self._open[caller]
        self._selector.unregister(caller)
        caller.close()


class Link(threading.Thread):
    """The spout task's part.  ``own`` is what the tuple says; ``driver`` is None while it is not known.

    ``failure`` says why the task cannot go on: a UserError that ends the topology, or what ended the thread.
    """

    def __init__(self, host: str, folder: Path) -> None:
        super().__init__(name="link", daemon=True)
        self._folder = folder
        server = socket.create_server((host, 0))
        self._callers = Callers(server)
        self._closed = False
        self.own = Access(f"{host}:{server.getsockname()[1]}", secrets.token_hex(16))
        self.driver: Access | None = None
        self.failure: Exception | None = None
        self._answers = 0
        self._answered = threading.Condition()
        self.start()

    def run(self) -> None:
        """Waits for the driver's answer and mirrors, again and again."""
        try:
            while not self._closed:
                if (driver := self._called()) is not None:
                    self._follow(driver)
        except Exception as error:
            self.fail(error)
            self._lose()
        finally:
            self._callers.close()

    def fail(self, error: Exception) -> None:
        """A thread of the task has ended by it, so the task cannot go on."""
        what = f"{type(error).__name__}: {printable(error)}"
        self.failure = RuntimeError(f"the link to the Spark driver failed: {what}; the task starts again")
        self.failure.__cause__ = error

    def _follow(self, driver: Access) -> None:
        try:
            self._mirror(driver)
        except OSError:
            self._lose()
        except UserError as error:
            self.failure = error
            self._lose()

    def _lose(self) -> None:
        with self._answered:
            self.driver = None
            self._answered.notify_all()

    def settle(self) -> None:
        """Waits until what the driver has published by now is mirrored, or the driver is away."""
        with self._answered:
            enough = self._answers + 2  # what is under way may have been said before
            self._answered.wait_for(lambda: self._answers >= enough or self.driver is None or self._closed)

    def close(self) -> None:
        """Ends soon."""
        with self._answered:
            self._closed = True
            self._answered.notify_all()
        self.join(_WITHIN)

    def _called(self) -> Access | None:
        """The driver, if it has called."""
        for line in self._callers.lines(0.1):
            with contextlib.suppress(ValueError, RecursionError):  # a stranger sends anything
                call = msgspec.json.decode(line, type=DriverCall)
                if secrets.compare_digest(call.token.encode(), self.own.token.encode()):
                    return call.driver
        return None

    def _mirror(self, driver: Access) -> None:
        """Until the driver does not answer.  An index that was begun anew is a new file.

        Nothing is asked of a driver before its index is there: what it does not have is no news then.
        """
        path = self._folder / INDEX
        known, size = "", 0
        while not self._closed:
            with driver.request("GET", f"/index?after={size}&id={known}") as answer:
                name, text = answer.headers[INDEX_ID], answer.read()
            anew = name != known
            self._keep(path, text, anew=anew)
            known, size = name, len(text) if anew else size + len(text)
            with self._answered:
                self.driver = driver
                self._answers += 1
                self._answered.notify_all()

    def _keep(self, path: Path, text: bytes, *, anew: bool) -> None:
        try:
            if anew:
                new = path.with_suffix(".new")
                new.write_bytes(text)
                new.replace(path)
            else:
                with path.open("ab") as file:
                    file.write(text)
        except OSError as error:
            raise UserError(
                f"the index cannot be kept in {self._folder}: {error}; the topology ends",
                hint="Make room there (disk= of the spout on Kubernetes).",
            ) from error


class Acknowledger(threading.Thread):
    """Tells the driver of a stream which partitions are acked, until it has heard."""

    def __init__(self, link: Link) -> None:
        super().__init__(name="acknowledger", daemon=True)
        self._link = link
        self._waiting: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self._closed = threading.Event()
        self.start()

    def tell(self, partition: int, batches: int) -> None:
        """All batches of the partition are acked.  Never waits."""
        self._waiting.put((partition, batches))

    def run(self) -> None:
        """One after the other."""
        try:
            while (acked := self._waiting.get()) is not None:
                while not self._write_progress(*acked) and not self._closed.wait(_AGAIN):
                    pass
        except Exception as error:
            self._link.fail(error)

    def _write_progress(self, partition: int, batches: int) -> bool:
        if (driver := self._link.driver) is None:
            return False
        mark = str(batches).encode()
        try:
            driver.write(f"{PROGRESS}/{partition}", mark, len(mark), xxhash.xxh3_64_hexdigest(mark))
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Ends soon; what the driver has not heard it is told by the next life of the task."""
        self._closed.set()
        self._waiting.put(None)
        self.join(_WITHIN)
