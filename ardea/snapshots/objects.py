"""A store of snapshots in a file system of pyarrow: S3, Google Cloud Storage, Azure, HDFS."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePosixPath
from typing import Any

from ardea.errors import UserError

BUCKETS = ("s3", "gcs", "abfs")
"""Kinds that have no folders: a name with slashes is all there is."""
AT_ONCE = 16
"""Files that are deleted at the same time: each takes some answers of the store, of tens of milliseconds."""

UNSENT = 32 << 20
"""Bytes of a file that are written at most before their way to the store is awaited: all of them are in memory."""


class Objects:
    """All names are relative to the folder that ``uri`` names, as ``s3://bucket/folder?region=eu-west-1`` does.

    A file is there when its stream was closed.  One whose writer has died may be cut; nothing names it then, and it is
    deleted with the others that no snapshot needs.
    """

    def __init__(self, uri: str, topology: str = "") -> None:
        """``topology``: its own part of the folder; empty: all of it.

        Raises:
            UserError: it is none of pyarrow's, or pyarrow is not installed.
            OSError: the network does not answer: of a bucket without a region, it is asked for that.
        """
        try:
            from pyarrow import fs
        except ModuleNotFoundError as error:
            raise UserError(
                f"topology.stateful.storage = {uri!r} needs pyarrow, which is not installed",
                hint="pip install 'ardea[arrow]', and add the extra to the image",
            ) from error
        try:
            system, path = fs.FileSystem.from_uri(uri)
        except ValueError as error:
            raise UserError(
                f"topology.stateful.storage = {uri!r} cannot be used: {error}",
                hint="give a folder, or an address that pyarrow.fs.FileSystem.from_uri takes",
            ) from error
        self._system: Any = system
        self._root = f"{path.rstrip('/')}/{topology}".rstrip("/")

    def __str__(self) -> str:
        return f"{self._system.type_name}://{self._root}"

    def write(self, name: str, content: Iterable[bytes]) -> None:
        """See :meth:`ardea.snapshots.place.Files.write`."""
        path = f"{self._root}/{name}"
        if self._system.type_name not in BUCKETS:
            self._system.create_dir(path.rpartition("/")[0], recursive=True)
        unsent = 0
        with self._system.open_output_stream(path) as stream:
            for part in content:
                stream.write(part)
                unsent += len(part)
                if unsent >= UNSENT:
                    stream.flush()  # waits until what is sent in the background is there
                    unsent = 0

    def names(self) -> list[str]:
        """See :meth:`ardea.snapshots.place.Files.names`."""
        from pyarrow import fs

        selector = fs.FileSelector(self._root, allow_not_found=True, recursive=True)
        known = self._system.get_file_info(selector)
        return [each.path[len(self._root) + 1 :] for each in known if each.type is fs.FileType.File]

    def delete(self, names: Iterable[str], *, over: bool = False) -> None:
        """See :meth:`ardea.snapshots.place.Files.delete`: a file that is on its way is in no list of a folder."""
        gone = list(names)
        with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="delete") as pool:
            for start in range(0, len(gone), AT_ONCE):  # a process that ends waits for these few only
                list(pool.map(self._delete_file, gone[start : start + AT_ONCE]))
        folders = {str(folder) for name in gone for folder in PurePosixPath(name).parents[:-1] if over}
        for folder in sorted(folders, key=len, reverse=True):
            self._delete_if_empty(f"{self._root}/{folder}")

    def _delete_file(self, name: str) -> None:
        """Another one may delete it meanwhile."""
        from pyarrow import fs

        path = f"{self._root}/{name}"
        if self._system.get_file_info(path).type is fs.FileType.File:
            with contextlib.suppress(FileNotFoundError):
                self._system.delete_file(path)

    def _delete_if_empty(self, folder: str) -> None:
        """Where there are only objects, one without content may stand for it, and deleting leaves another one above."""
        from pyarrow import fs

        if not self._system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            self._delete_folder(folder)

    def remove(self) -> None:
        """See :meth:`ardea.snapshots.place.Files.remove`."""
        self._delete_folder(self._root)

    def _delete_folder(self, folder: str) -> None:
        """What is gone is as good as deleted."""
        with contextlib.suppress(FileNotFoundError):
            self._system.delete_dir(folder)

    def written(self, name: str) -> float:
        """See :meth:`ardea.snapshots.place.Files.written`."""
        known: float = self._known(name).mtime.timestamp()
        return known

    def read(self, name: str, most: int | None = None) -> bytes:
        """See :meth:`ardea.snapshots.place.Files.read`."""
        with self._system.open_input_file(self._known(name).path) as file:
            content: bytes = file.read(most)
        return content

    def parts(self, name: str, most: int) -> Iterator[bytes]:
        """See :meth:`ardea.snapshots.place.Files.parts`."""
        with self._system.open_input_file(self._known(name).path) as file:
            while part := file.read(most):
                yield part

    def _known(self, name: str) -> Any:
        from pyarrow import fs

        known = self._system.get_file_info(f"{self._root}/{name}")
        if known.type is fs.FileType.NotFound:
            raise FileNotFoundError(f"there is no {known.path}")
        return known
