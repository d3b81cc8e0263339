"""One JSON object a sample and line, in a file that is rotated by size."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec

from ardea.errors import ConfigError
from ardea.metrics.sinks import Sample, convert_config


class JsonLinesConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file; beyond ``max_bytes`` it becomes ``path.1``, that ``path.2`` …, ``files`` of them in all."""

    path: str
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 64 << 20
    files: Annotated[int, msgspec.Meta(ge=1)] = 5


class JsonLinesSink:
    """Appends ``{"timestamp": …, "name": …, "type": …, "labels": {…}, "value": …}`` lines."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = convert_config("jsonlines", config, JsonLinesConfig)
        if not self._config.path.startswith(("/", "{folder}")):
            raise ConfigError(
                f"metrics sink 'jsonlines': path {self._config.path!r} is not absolute",
                hint="begin it with / or {folder}; {topology}, {topology_id} and {container} in it are filled in, too",
            )
        self._file: BinaryIO | None = None
        self._encoder = msgspec.json.Encoder()

    def open(self) -> None:
        """Opens the file for appending, behind the end of its last whole line."""
        path = Path(self._config.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab+", buffering=0)  # what a full disk refused must not be written later
        self._lock()
        if self._file.tell():
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":  # a full disk or a kill cut it
                self._file.write(b"\n")

    def write(self, timestamp: float, samples: Sequence[Sample]) -> None:
        """Appends a batch and hands it to the operating system; rotates first if the file is full."""
        assert self._file is not None
        if self._file.tell() >= self._config.max_bytes:
            self._rotate()
        lines = [
            self._encoder.encode({"timestamp": timestamp, **msgspec.to_builtins(sample)}) + b"\n" for sample in samples
        ]
        rest = memoryview(b"".join(lines))
        while rest:
            rest = rest[self._file.write(rest) :]

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()

    def _lock(self) -> None:
        """Two that rotate one file would lose each other's lines."""
        assert self._file is not None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(f"{self._config.path} is another process', write {{container}} into its path") from None

    def _rotate(self) -> None:
        path = Path(self._config.path)
        names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, self._config.files))]
        for older, newer in reversed(list(zip(names[1:], names, strict=False))):
            if newer.exists():
                newer.replace(older)
        self.close()
        self._file = path.open("wb", buffering=0)
        self._lock()
