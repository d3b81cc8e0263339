"""One archive with all that is known of a topology, without secrets (docs/debugging.md, "A bundle")."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, BinaryIO, TypeVar

import msgspec

from ardea.errors import ArdeaError, NotFound, printable
from ardea.plan.definition import Definition
from ardea.plan.resource import MIB
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.archive import Archive, safe
from ardea.scheduler.control import Status, story_lines
from ardea.scheduler.redaction import Redaction
from ardea.scheduler.schedulers import Description, Evidence, Handle, Logs, Scheduler
from ardea.versions import FORMAT, PROTOCOL, __version__

T = TypeVar("T")
LOG_MIB, MOST_LOG_MIB = 4, 64
"""MiB of one log, if nothing else is asked for, and at most."""
MOST_LOGS, MOST_FILE = 256 * MIB, 16 * MIB
"""Bytes of all logs together, and of any other file."""
README = """\
# What was known of {topology}

Made by `ardea debug bundle` of Ardea {version} at {at}. Secrets that are named like one were replaced by `[redacted]`;
others cannot be known.

| File | Is |
| --- | --- |
| `manifest.json` | each file with its size, what was cut, and what could not be had, with the reason |
| `topology.json` | who submitted what, when and from where; its state and health |
| `status.json` | what the master says |
| `stories.txt` | what happened last to each task and container, to the update, the snapshots and the topology |
| `processes.json` | one row a process: container, pid, life, restarts, its last end |
| `exits.json` | how each process has ended, the last 20 times |
| `configuration.json` | the topology's configuration, and what each component overrides |
| `plan.json` | components, what they read, states, and which task is in which container |
| `versions.json` | of Ardea here and of the one that submitted it, of Python and of the system |
| `logs/PROCESS.log` | the newest lines of each process, as bytes |
| `metrics/*.prom` | what each container serves at `/metrics` |
| `kubernetes/events.json`, `kubernetes/pods.json` | events of its objects; where its pods are |
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for one file and for all, and bytes of one log."""

    file_seconds: float = 20.0
    all_seconds: float = 60.0
    log_bytes: int = LOG_MIB * MIB


@dataclass(slots=True)
class Contents:
    """What has become of a bundle: bytes by file, what was cut, and why something is missing."""

    topology: str
    at: str
    files: dict[str, int] = field(default_factory=dict)
    cut: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    replaced: int = 0


class Bundle:
    """Gathers what one scheduler knows of one topology; each file by itself, so that none keeps another away."""

    def __init__(
        self, scheduler: Scheduler, name: str, limits: Limits, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``name``: of the topology, or its id.

        Raises:
            NotFound: nobody knows it, and it has left no logs.
            ArdeaError: it cannot be asked for, and there are no logs.
        """
        self._limits, self._clock = limits, clock
        self._redaction = Redaction()
        # PWD is every shell's working folder, and no password.
        self._redaction.learn_from({key: value for key, value in os.environ.items() if key != "PWD"})
        self._handle: Handle | None = None
        self._log_bytes = limits.log_bytes
        unknown: ArdeaError | None = None
        try:
            self._handle = scheduler.find(name)
        except ArdeaError as error:
            unknown = error
        try:
            self._logs: Logs | None = scheduler.logs(name)
        except NotFound:
            if unknown is not None:
                raise unknown from None
            self._logs = None
        self.topology = name if self._handle is None else self._handle.id
        self._contents = Contents(self.topology, datetime.now(UTC).isoformat(timespec="seconds"))
        if unknown is not None:
            self._miss("topology.json", unknown.message)

    @property
    def file_name(self) -> str:
        """What the archive is called: ASCII, and no path."""
        return f"{safe(self.topology).replace('/', '-')}-bundle.tar.gz"

    def write(self, out: BinaryIO) -> Contents:
        """Once; takes as long as the limits say, at most.  Raises OSError: ``out`` cannot be written."""
        contents, deadline = self._contents, self._clock() + self._limits.all_seconds
        with Archive(out, f"{self.topology}-bundle") as archive:
            readme = README.format(topology=self.topology, version=__version__, at=contents.at)
            archive.add("README.md", self._redaction.clean(readme.encode()))
            for piece in self._pieces(deadline):
                self._add(archive, piece, deadline)
            contents.files, contents.replaced = dict(archive.files), self._redaction.count
            archive.add("manifest.json", _json(self._redaction.document(msgspec.to_builtins(contents))))
        return contents

    def close(self) -> None:
        """Gives back what it holds."""
        for held in (self._logs, self._handle):
            if held is not None:
                held.close()

    # --- one file ---------------------------------------------------------------------------------------------

    def _add(self, archive: Archive, piece: Evidence, deadline: float) -> None:
        try:
            found = self._read(piece.read, deadline)
        except (ArdeaError, OSError, ValueError) as error:
            self._miss(piece.file, error.message if isinstance(error, ArdeaError) else printable(error))
            return
        data = self._redaction.clean(found) if isinstance(found, bytes) else _json(self._redaction.document(found))
        if piece.file.startswith("logs/"):
            data = self._newest(piece.file, data, self._log_bytes)
        elif len(data) > MOST_FILE:
            self._contents.cut.append(piece.file)
            data = data[:MOST_FILE]
        archive.add(self._redaction.text(piece.file), data)

    def _read(self, read: Callable[[], Any], deadline: float) -> Any:
        """On a thread of its own, which is left alone when its time is over."""
        seconds = min(self._limits.file_seconds, deadline - self._clock())
        if seconds <= 0:
            raise ArdeaError(f"the {self._limits.all_seconds:g} s that all files have were over")
        answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

        def run() -> None:
            try:
                answers.put((read(), None))
            except BaseException as error:  # told by whoever waits
                answers.put((None, error))

        threading.Thread(target=run, name="bundle", daemon=True).start()
        try:
            found, error = answers.get(timeout=seconds)
        except Empty:
            raise ArdeaError(f"it was not there within {seconds:.0f} s") from None
        if error is not None and not isinstance(error, (ArdeaError, OSError)):
            raise ArdeaError(f"{type(error).__name__}: {printable(error)}") from error
        if error is not None:
            raise error
        return found

    def _newest(self, file: str, data: bytes, most: int) -> bytes:
        """The last of it, from the beginning of a line on."""
        if len(data) <= most:
            return data
        self._contents.cut.append(file)
        begin = data.find(b"\n", len(data) - most - 1) + 1
        return data[begin or len(data) - most :]

    def _miss(self, file: str, why: str) -> None:
        self._contents.missing[file] = self._redaction.text(why)

    # --- which there are --------------------------------------------------------------------------------------

    def _pieces(self, deadline: float) -> Iterator[Evidence]:
        for secret in self._listed("secrets", self._logs.secrets, deadline) if self._logs is not None else ():
            self._redaction.learn(secret)
        if self._handle is not None:
            yield from self._of_handle(self._handle, deadline)
        yield Evidence("versions.json", partial(_versions, self._handle))
        yield from self._of_logs(deadline)
        if self._handle is not None:
            yield from self._listed("metrics and events", self._handle.evidence, deadline)

    def _of_handle(self, handle: Handle, deadline: float) -> Iterator[Evidence]:
        """All that is secret is known before the first file."""
        definition = self._known(handle.definition, ("configuration.json", "plan.json"), deadline)
        described = ("topology.json", "status.json", "stories.txt", "processes.json")
        description = self._known(handle.describe, described, deadline)
        if description is not None and description.topology.record is not None:
            self._redaction.learn_from(description.topology.record.config)
        if definition is not None:
            self._redaction.learn_from({**_configuration(definition), "state": definition.state})
            yield Evidence("configuration.json", partial(_configuration, definition))
            yield Evidence("plan.json", partial(_plan, definition))
        if description is not None:
            yield from self._of_description(description)

    def _known(self, ask: Callable[[], T], files: Sequence[str], deadline: float) -> T | None:
        """None: these files are missing."""
        try:
            found: T = self._read(ask, deadline)
        except (ArdeaError, OSError) as error:
            for file in files:
                self._miss(file, printable(error))
            return None
        return found

    def _of_description(self, description: Description) -> Iterator[Evidence]:
        yield Evidence("topology.json", partial(_topology, description))
        yield Evidence("processes.json", lambda: msgspec.to_builtins(description.processes))
        if description.pods is not None:
            yield Evidence("kubernetes/pods.json", lambda: description.pods)
        if description.status is None:
            why = description.silence or f"{self.topology} does not run, and has no master"
            for file in ("status.json", "stories.txt"):
                self._miss(file, why)
            return
        yield Evidence("status.json", partial(msgspec.to_builtins, description.status))
        yield Evidence("stories.txt", partial(_stories, description.status))

    def _of_logs(self, deadline: float) -> Iterator[Evidence]:
        if self._logs is None:
            self._miss("logs", "there are none")
            return
        labels = list(self._listed("logs", self._logs.names, deadline))
        self._log_bytes = min(self._log_bytes, MOST_LOGS // max(1, len(labels)))
        # No half of a secret is left at its beginning, and at least a byte more shows that there is more of it.
        more = self._log_bytes + max(1, self._redaction.longest)
        for label in labels:
            name = self._redaction.text(label).replace("/", ".")
            yield Evidence(f"logs/{name}.log", partial(self._logs.newest, label, more))

    def _listed(self, what: str, ask: Callable[[], Iterable[T]], deadline: float) -> list[T]:
        """All of an iterator; what it fails with is told."""
        return self._known(lambda: list(ask()), (what,), deadline) or []


def _json(document: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document, enc_hook=str)) + b"\n"


def _versions(handle: Handle | None) -> dict[str, Any]:
    record = None if handle is None else handle.topology.record
    return {
        "ardea": __version__,
        "protocol": PROTOCOL,
        "format": FORMAT,
        "submitted_by_ardea": None if record is None else record.ardea_version,
        "python": sys.version,
        "system": platform.platform(),
        "machine": platform.node(),
        "cores": os.cpu_count(),
    }


def _configuration(definition: Definition) -> dict[str, Any]:
    shape = definition.shape
    return {
        "topology": shape.config,
        "submitter": definition.config,
        "components": {component.name: component.config for component in shape.components},
    }


def _plan(definition: Definition) -> dict[str, Any]:
    components = msgspec.to_builtins(definition.shape.components)
    for component in components:
        del component["config"]  # it stands in another file
    return {
        "location": definition.location,
        "state": definition.state,
        "epoch": definition.epoch,
        "build": definition.build,
        "components": components,
        "packing": msgspec.to_builtins(packing_from_bytes(definition.packing)),
    }


def _topology(description: Description) -> dict[str, Any]:
    topology = description.topology
    return {
        "id": topology.id,
        "state": topology.state,
        "running": topology.running,
        "problem": None if topology.problem is None else topology.problem.message,
        "record": msgspec.to_builtins(topology.record),
        "execution": msgspec.to_builtins(topology.execution),
        "health": msgspec.to_builtins(description.health),
        "kept_by": msgspec.to_builtins(description.kept_by),
        "master_silent": description.silence or None,
        "folder": None if description.folder is None else str(description.folder),
    }


def _stories(status: Status) -> bytes:
    return "".join(f"{text}\n" for text in story_lines(status, status.stories)).encode(errors="backslashreplace")
