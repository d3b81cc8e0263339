"""Where Spark tasks put staged files: a folder that all see, the driver's over HTTP, or a pyarrow.fs URI."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import msgspec
import tenacity
import xxhash

from ardea.spark.access import PIECE, Access, RefusedError
from ardea.spark.index import REPORTS, Partition, report_name, write_report


class Storage(Protocol):
    """What a Spark task needs; travels to it by pickle.  Names are ``RUN/FILE``."""

    def draft(self, name: str, scratch: Path) -> Path:
        """Where the file is to be written first, on this machine; ``scratch`` is a folder that Spark removes."""
        ...

    def store(self, draft: Path, name: str, checksum: str) -> None:
        """Puts the finished file in its place; OSError if that is not possible."""
        ...

    def report(self, run: str, partition: Partition) -> None:
        """Tells the driver; OSError if that is not possible."""
        ...


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that tasks and driver see: files are written in place."""

    path: str

    def draft(self, name: str, scratch: Path) -> Path:  # noqa: ARG002
        """In place."""
        return Path(self.path) / name

    def store(self, draft: Path, name: str, checksum: str) -> None:  # noqa: ARG002
        """It is there; let it be so after a power cut, too."""
        for path in (draft, draft.parent, draft.parent.parent):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def report(self, run: str, partition: Partition) -> None:
        """A file as well."""
        write_report(Path(self.path) / run, partition)


_patiently = tenacity.retry(
    retry=tenacity.retry_if_exception(lambda error: isinstance(error, OSError) and not isinstance(error, RefusedError)),
    stop=tenacity.stop_after_attempt(4),
    wait=tenacity.wait_exponential(0.2),
    reraise=True,
)


@dataclass(frozen=True, slots=True)
class Served:
    """The driver's folder, over HTTP.  A lost connection is tried again; what the driver refuses is not."""

    driver: Access

    def draft(self, name: str, scratch: Path) -> Path:
        """Among Spark's own temporary files."""
        return scratch / Path(name).name

    @_patiently
    def store(self, draft: Path, name: str, checksum: str) -> None:
        """Uploads it."""
        with draft.open("rb") as file:
            self.driver.write(name, file, draft.stat().st_size, checksum)
        draft.unlink()

    @_patiently
    def report(self, run: str, partition: Partition) -> None:
        """Uploads it, too."""
        body = msgspec.json.encode(partition)
        name = f"{run}/{REPORTS}/{report_name(partition)}"
        self.driver.write(name, body, len(body), xxhash.xxh3_64_hexdigest(body))


@dataclass(frozen=True, slots=True)
class Uri:
    """A folder of a pyarrow.fs file system; reports go to the driver."""

    uri: str
    driver: Access

    def draft(self, name: str, scratch: Path) -> Path:
        """Among Spark's own temporary files."""
        return scratch / Path(name).name

    def store(self, draft: Path, name: str, checksum: str) -> None:  # noqa: ARG002 -- readers compare
        """Copies it."""
        system, root = file_system(self.uri)
        target = f"{root}/{name}"
        system.create_dir(target.rpartition("/")[0], recursive=True)
        with draft.open("rb") as file, system.open_output_stream(target) as stream:
            shutil.copyfileobj(file, stream, PIECE)
        draft.unlink()

    def report(self, run: str, partition: Partition) -> None:
        """As :class:`Served` does."""
        Served(self.driver).report(run, partition)


def file_system(uri: str) -> tuple[Any, str]:
    """The file system and the path in it; ValueError or OSError if the URI is none of pyarrow's."""
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(uri)
    return system, path.rstrip("/")


def below(uri: str, path: str) -> str:
    """What lies there in the URI's folder; its options (``?region=``) stay at the end."""
    folder, mark, options = uri.partition("?")
    return f"{folder.rstrip('/')}/{path}{mark}{options}"


def remove(uri: str) -> None:
    """The folder and all in it, if it is there."""
    from pyarrow import fs

    system, path = file_system(uri)
    if system.get_file_info(path).type is fs.FileType.Directory:
        system.delete_dir(path)
