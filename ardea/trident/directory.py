"""The lines of a directory's files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from ardea.trident.files import TextSpout
from ardea.trident.tuples import Row


class DirectorySpout(TextSpout):
    """Emits the lines of all files of a directory, as text without the line's end; made by one of two class methods."""

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
        return cls(path, pattern=pattern, outputs=field, most=lines, follow=follow, opaque=False)

    @classmethod
    def opaque_transactional(
        cls, path: str | Path, *, pattern: str = "*", lines: int = 1000, follow: bool = False, field: str = "line"
    ) -> Self:
        """The same as an opaque spout: a batch that is repeated may have grown."""
        return cls(path, pattern=pattern, outputs=field, most=lines, follow=follow, opaque=True)

    def read(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[Row | None, int]]:
        """Every line, an empty one too."""
        for line, behind in self.lines(file, start, end):
            yield (line.rstrip(b"\r\n").decode(errors="replace"),), behind
