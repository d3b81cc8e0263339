"""Reading a staged partition back, a batch at a time, from mapped files."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import xxhash

from ardea.errors import ClusterError, UserError, without_key
from ardea.spark.access import PIECE, Access, RefusedError
from ardea.spark.index import Partition, StagedFile
from ardea.spark.stage import checksum
from ardea.spark.storage import file_system

if TYPE_CHECKING:
    import pyarrow as pa

Batches: TypeAlias = "Iterator[tuple[int, pa.RecordBatch] | None]"
"""(number, batch), or None: not there yet, ask again."""
Pieces: TypeAlias = Callable[[str, int], Iterator[bytes]]
"""From (path, start) to the bytes of a staged file; raises OSError."""
ATTEMPTS = 5
"""Reads of a file by URI that may fail one after the other."""


class Files(Protocol):
    """Where a spout task has staged files from."""

    def local(self, file: StagedFile) -> Path | None:
        """The whole file on this machine, compared with its checksum, or None: not yet.

        Raises:
            ClusterError: it is missing, or is not what was reported.
        """
        ...

    def expect(self, file: StagedFile) -> None:
        """It will be asked for soon."""
        ...

    def done(self, path: Path) -> None:
        """What ``local`` returned is mapped, or not needed any more."""
        ...


def batches_of(files: Files, partition: Partition, first: int) -> Batches:
    """From number ``first`` on; one file is mapped at a time.

    Raises:
        ClusterError: a file is missing, or is not what was reported.
    """
    import pyarrow

    number = 0
    for following, file in enumerate(partition.files, 1):
        if number + file.batches <= first:
            number += file.batches
            continue
        while (path := files.local(file)) is None:
            yield None
        for coming in partition.files[following : following + 1]:
            files.expect(coming)
        with pyarrow.memory_map(str(path)) as source:
            files.done(path)
            reader = pyarrow.ipc.open_file(source)
            for place in range(max(0, first - number), file.batches):
                yield number + place, reader.get_batch(place)
        number += file.batches


class SharedFiles:
    """Files in a folder that this machine sees."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def local(self, file: StagedFile) -> Path:
        """Reads it through once."""
        path = self._folder / file.path
        try:
            found = checksum(path)
        except FileNotFoundError:
            raise _spoilt(file, f"{path} is gone") from None
        if found != file.checksum:
            raise _spoilt(file, _changed(path, found, file))
        return path

    def expect(self, file: StagedFile) -> None:
        """It is there."""

    def done(self, path: Path) -> None:
        """It stays."""


class FetchedFiles:
    """Files that are fetched into ``scratch``, by a thread, one ahead; each is removed once it is mapped."""

    def __init__(self, scratch: Path, pieces: Pieces, patience: int | None, settle: Callable[[], None]) -> None:
        """Nothing is fetched yet.

        Args:
            scratch: a folder of this task's own.
            pieces: what the files are made of.
            patience: connections that may be lost one after the other, for one file; None: any number.
            settle: called before an error is told: waits until the index is known that the driver has by then.
        """
        self._scratch, self._pieces, self._patience, self._settle = scratch, pieces, patience, settle
        self._thread = ThreadPoolExecutor(1, "fetch")
        self._fetched: dict[str, Future[Path | None]] = {}
        self._lost = 0

    def local(self, file: StagedFile) -> Path | None:
        """Never waits."""
        self.expect(file)
        future = self._fetched[file.path]
        if not future.done():
            return None
        del self._fetched[file.path]
        return future.result()

    def expect(self, file: StagedFile) -> None:
        """Begins."""
        if file.path not in self._fetched:
            self._fetched[file.path] = self._thread.submit(self._fetch, file)

    def done(self, path: Path) -> None:
        """Its pages stay for who has mapped it."""
        path.unlink()

    def close(self) -> None:
        """Ends the thread after the file that it fetches."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, file: StagedFile) -> Path | None:
        try:
            return self._compared(file)
        except ClusterError:
            self._settle()  # the driver removes files behind the index: it may not be wanted any more
            raise

    def _compared(self, file: StagedFile) -> Path | None:
        path = self._scratch / file.path.replace("/", "-")
        digest = xxhash.xxh3_64()
        try:
            with path.open("wb") as target:
                for piece in self._arriving(file):
                    digest.update(piece)
                    target.write(piece)
        except _LostError as error:
            self._lost += 1
            if self._patience is not None and self._lost > self._patience:
                self._lost = 0  # for whoever asks again later
                raise _spoilt(file, f"{file.path} cannot be read: {error}") from error
            return None
        except OSError as error:
            raise UserError(
                f"the staged file {file.path} cannot be kept at {path}: {error}; the topology ends",
                hint="Give the spout more disk, or write smaller files (file_bytes=).",
            ) from error
        self._lost = 0
        if digest.hexdigest() != file.checksum:
            raise _spoilt(file, _changed(file.path, digest.hexdigest(), file))
        return path

    def _arriving(self, file: StagedFile) -> Iterator[bytes]:
        """The bytes; what was lost on the way is asked for once more, from there on."""
        size = 0
        while size < file.bytes:
            before = size
            try:
                for piece in self._pieces(file.path, size):
                    size += len(piece)
                    yield piece
            except FileNotFoundError:
                raise _spoilt(file, f"{file.path} is gone") from None
            except OSError as error:
                if size == before:
                    raise _LostError(str(error)) from error
            else:
                if size == before:
                    return  # shorter than reported: the checksum says so


class _LostError(Exception):
    """Nothing came at all."""


def served_pieces(driver: Callable[[], Access | None]) -> Pieces:
    """Of the driver's folder; ``driver`` is None while it is not known."""

    def pieces(path: str, start: int) -> Iterator[bytes]:
        if (access := driver()) is None:
            raise ConnectionError("the driver is away")
        try:
            yield from access.read(path, start)
        except RefusedError as error:
            if error.status == http.client.NOT_FOUND:
                raise FileNotFoundError(path) from error
            if error.status != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:  # the file ends before
                raise

    return pieces


def uri_pieces(uri: str) -> Pieces:
    """Of a pyarrow.fs file system."""
    try:
        system, root = file_system(uri)
    except OSError as error:
        raise RuntimeError(without_key(f"{uri} cannot be reached: {error}; the task starts again")) from None

    def pieces(path: str, start: int) -> Iterator[bytes]:
        with system.open_input_file(f"{root}/{path}") as source:
            source.seek(start)
            while piece := source.read(PIECE):
                yield piece

    return pieces


def _changed(path: Path | str, found: str, file: StagedFile) -> str:
    return f"{path} has changed since Spark wrote it: its checksum is {found}, reported was {file.checksum}"


def _spoilt(file: StagedFile, problem: str) -> ClusterError:
    return ClusterError(
        f"the staged file {problem}; up to {file.rows} rows would be missing, so the topology ends",
        hint="Check the storage, let nothing else write there, and run the topology again.",
    )
