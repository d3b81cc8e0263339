"""Reading a staged partition back, a batch at a time, from mapped files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ardea.errors import ClusterError
from ardea.spark.index import Partition, StagedFile
from ardea.spark.stage import checksum

if TYPE_CHECKING:
    import pyarrow as pa

Batches: TypeAlias = "Iterator[tuple[int, pa.RecordBatch]]"
"""(number, batch)"""


def batches_of(folder: Path, partition: Partition, first: int) -> Batches:
    """From number ``first`` on; one file is mapped at a time.

    Raises:
        ClusterError: a file is missing, or is not what was reported.
    """
    import pyarrow

    number = 0
    for file in partition.files:
        if number + file.batches <= first:
            number += file.batches
            continue
        path = folder / file.path
        _check(path, file)
        with pyarrow.memory_map(str(path)) as source:
            reader = pyarrow.ipc.open_file(source)
            for place in range(max(0, first - number), file.batches):
                yield number + place, reader.get_batch(place)
        number += file.batches


def _check(path: Path, file: StagedFile) -> None:
    try:
        found = checksum(path)
    except FileNotFoundError:
        problem = "is gone"
    else:
        if found == file.checksum:
            return
        problem = f"has changed since Spark wrote it: its checksum is {found}, reported was {file.checksum}"
    raise ClusterError(
        f"the staged file {path} {problem}; rows of it would be missing, so the topology ends",
        hint="Look after the disk, let nothing else write there, and run the topology again.",
    )
