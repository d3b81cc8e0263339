"""Lines of files as sources; a position is an offset in bytes (docs/sources.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ardea.collectors import Values
from ardea.errors import TopologyError, UserError, printable
from ardea.sources import END, PositionLost, Source
from ardea.watermarks import Timestamps

AT_ONCE = 16
EVERY = 10.0
BYTES = 1 << 20
"""Of lines that are read at a time, at most, but for one line that is longer."""
LONGEST = 64 << 20


class Lines(Source):
    """Each file is a partition, each line a row: ``SourceSpout(Lines("/logs/*.log")).spec(par=2)``."""

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        outputs: Sequence[str] = ("line",),
        translate: Callable[[bytes], Values | None] | None = None,
        *,
        follow: bool = False,
        timestamps: Timestamps | None = None,
    ) -> None:
        """Nothing is opened.

        Args:
            paths: absolute paths, or patterns of such, with ``*``, ``?`` and ``**``.  All tasks see the files.
            outputs: the fields.
            translate: from a line, without its end, to a row; None leaves it out.  By default the line as text.
            follow: goes on with lines and files that are added; False: ends after those that are there.
            timestamps: see :class:`ardea.Source`.

        Raises:
            TopologyError: a path is not absolute.
        """
        self._patterns = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
        if wrong := [pattern for pattern in self._patterns if not Path(pattern).is_absolute()]:
            raise TopologyError(
                [f"{type(self).__name__}: {pattern!r} is no absolute path" for pattern in wrong],
                hint="Tasks may run in another folder than you: write str(Path(__file__).parent / 'orders.jsonl').",
            )
        self.outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        self.follow, self.timestamps = follow, timestamps
        self.every = EVERY if follow else None
        self.at_once = None if follow else AT_ONCE
        self.translate = translate or _text

    def list_partitions(self) -> list[str]:
        """The paths of the files that are there; UserError if they are to be read to their ends and there is none."""
        files = sorted({str(path) for pattern in self._patterns for path in _matching(pattern) if path.is_file()})
        if not files and not self.follow:
            raise UserError(f"there is no file {' or '.join(self._patterns)}, so that it cannot be read to its end")
        return files

    def still_listed(self, partition: str) -> None:
        """One that is followed ends only when it is removed, so there is another file: a UserError."""
        if self.follow:
            raise UserError(
                f"{partition} has ended, since it was removed, or read without follow=True; nobody would read the file "
                "that has its name now, so the topology ends",
                hint=f"Give that file another name, which a removed one leaves free {2 * EVERY:g} s later. Rotate by "
                "new names, as orders-1.log and orders-2.log are.",
            )

    def open(self, partition: str, position: int | None) -> LineReader:
        """At that byte."""
        return LineReader(self, partition, position or 0)


class LineReader:
    """Of one file."""

    def __init__(self, source: Lines, path: str, at: int) -> None:
        self._source, self._path, self._at = source, path, at
        self._removed = False
        try:
            self._file = Path(path).open("rb")  # noqa: SIM115 -- as long as the reader
        except FileNotFoundError:
            raise PositionLost("the file is gone") from None
        if (size := os.fstat(self._file.fileno()).st_size) < at:
            self._file.close()
            raise PositionLost(f"the file has only {size:,} bytes")

    def read(self, most: int) -> Any:
        """Whole lines; the last of a file to which nobody appends may lack its end."""
        begin = self._at
        rows: list[Values] = []
        self._file.seek(begin)
        while len(rows) < most and self._at < begin + BYTES and (line := self._file.readline(LONGEST)):
            if not line.endswith(b"\n"):
                if len(line) == LONGEST:
                    raise UserError(f"the line at byte {self._at:,} of {self._path} has more than {LONGEST:,} bytes")
                if self._source.follow and not self._removed:
                    break
            if (row := self._translated(line)) is not None:
                rows.append(row)
            self._at += len(line)
        return rows if self._at > begin else self._nothing(most)

    def _translated(self, line: bytes) -> Values | None:
        try:
            return self._source.translate(line.removesuffix(b"\n").removesuffix(b"\r"))
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"the line at byte {self._at:,} of {self._path} cannot be emitted: {type(error).__name__}: "
                f"{printable(error)}",
                hint="Correct it, or give a translate= that returns None for such lines; it is read again then.",
            ) from error

    def _nothing(self, most: int) -> Any:
        """No whole line is there."""
        held = os.fstat(self._file.fileno())
        if held.st_size < self._at:
            raise PositionLost(f"the file has only {held.st_size:,} bytes")
        if self._removed or not self._source.follow:
            return END
        try:
            present = Path(self._path).stat()
        except FileNotFoundError:
            self._removed = True
            return self.read(most)  # what was appended before that
        if not os.path.samestat(held, present):
            raise PositionLost("another file has taken its name")
        return []

    def position(self) -> int:
        """The byte after the last line."""
        return self._at

    def close(self) -> None:
        """The file."""
        self._file.close()


class JsonLines(Lines):
    """Files with an object a line: ``JsonLines("/data/orders-*.jsonl", ["customer", "amount"])``."""

    def __init__(
        self,
        paths: str | Path | Sequence[str | Path],
        outputs: Sequence[str],
        *,
        follow: bool = False,
        timestamps: Timestamps | None = None,
    ) -> None:
        """``outputs``: the names of the members that make a row; one that an object does not have is None there."""
        fields = [outputs] if isinstance(outputs, str) else list(outputs)
        decode = msgspec.json.Decoder(dict[str, Any]).decode

        def row(line: bytes) -> Values | None:
            get = decode(line).get
            return [get(field) for field in fields]

        super().__init__(paths, fields, row, follow=follow, timestamps=timestamps)


def _matching(pattern: str) -> Iterable[Path]:
    path = Path(pattern)
    return Path(path.anchor).glob(str(path.relative_to(path.anchor)).replace("[", "[[]"))  # a name's own, no class


def _text(line: bytes) -> Values:
    return (line.decode(),)
