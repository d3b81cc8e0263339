"""The lines of a directory's files; a file is a partition, and its position the bytes that a batch took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from ardea.trident.operations import Collector
from ardea.trident.partitioned import PartitionedSpout
from ardea.trident.spout import Attempt

_LOOK = 1 << 16


class DirectorySpout(PartitionedSpout):
    """Emits the lines of all files of a directory, as text without the line's end; made by one of two class methods.

    Files may appear and grow; they must not change where they were read.  All tasks need to see the directory.
    """

    def __init__(self, path: str | Path, *, pattern: str, lines: int, follow: bool, opaque: bool, field: str) -> None:
        self.outputs = [field]
        self.opaque = self.committing = opaque
        self._path, self._pattern, self._lines, self._follow = Path(path), pattern, lines, follow

    @classmethod
    def transactional(
        cls, path: str | Path, *, pattern: str = "*", lines: int = 1000, follow: bool = False, field: str = "line"
    ) -> Self:
        """Repeats batches exactly.

        Args:
            path: the directory; it may not exist yet.
            pattern: of the file names.
            lines: most lines of a file in one batch.
            follow: wait for more lines and files, for ever; a line without an end is then not complete.
            field: the name of the output field.
        """
        return cls(path, pattern=pattern, lines=lines, follow=follow, opaque=False, field=field)

    @classmethod
    def opaque_transactional(
        cls, path: str | Path, *, pattern: str = "*", lines: int = 1000, follow: bool = False, field: str = "line"
    ) -> Self:
        """The same as an opaque spout: a batch that is repeated may have grown."""
        return cls(path, pattern=pattern, lines=lines, follow=follow, opaque=True, field=field)

    def partitions(self) -> Sequence[str]:
        """The files' names."""
        return sorted(file.name for file in self._path.glob(self._pattern) if file.is_file())

    def emit_new(self, attempt: Attempt, partition: str, last: Any, collector: Collector) -> list[int]:  # noqa: ARG002
        """The next lines; the position is [first byte, end]."""
        start = end = last[1] if last else 0
        try:
            file = (self._path / partition).open("rb")
        except FileNotFoundError:
            return [start, end]
        with file:
            file.seek(start)
            for _ in range(self._lines):
                line = file.readline()
                if not line or (self._follow and not line.endswith(b"\n")):
                    break
                end += len(line)
                collector.emit((_text(line),))
        return [start, end]

    def emit_again(self, attempt: Attempt, partition: str, position: Any, collector: Collector) -> None:  # noqa: ARG002
        """The same bytes."""
        start, end = position
        if end > start:
            with (self._path / partition).open("rb") as file:
                file.seek(start)
                for line in file.read(end - start).removesuffix(b"\n").split(b"\n"):
                    collector.emit((_text(line),))

    def is_ready(self, positions: Mapping[str, Any]) -> bool:
        """Whether a file has a line to emit."""
        return any(self._more(name, positions.get(name)) for name in self.partitions())

    def finished(self, positions: Mapping[str, Any]) -> bool:
        """Whether all files have been read, if they are not followed."""
        return not self._follow and not self.is_ready(positions)

    def _more(self, name: str, position: Any) -> bool:
        try:
            with (self._path / name).open("rb") as file:
                file.seek(position[1] if position else 0)
                rest = file.read(_LOOK)
        except FileNotFoundError:
            return False
        return bool(rest) and (not self._follow or b"\n" in rest or len(rest) == _LOOK)


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode(errors="replace")
