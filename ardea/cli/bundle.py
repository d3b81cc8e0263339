"""``ardea debug bundle``: what is known of a topology, in one archive for somebody else."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from ardea.cli import console
from ardea.cli.console import Name
from ardea.errors import ClusterError
from ardea.plan.resource import MIB
from ardea.scheduler.bundle import LOG_MIB, MOST_LOG_MIB, Bundle, Contents, Limits
from ardea.scheduler.schedulers import Scheduler


def bundle(
    scheduler: Scheduler,
    name: Name,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The archive.  Default: ID-bundle.tar.gz in this folder."),
    ] = None,
    log_mib: Annotated[
        int, typer.Option("--log-mib", min=1, max=MOST_LOG_MIB, help="MiB of each log, the newest.")
    ] = LOG_MIB,
) -> None:
    """Pack what is known of a topology into one archive, without secrets."""
    with contextlib.closing(Bundle(scheduler, name, Limits(log_bytes=log_mib * MIB))) as made:
        file = output or Path(made.file_name)
        if file.is_dir():
            file /= made.file_name
        contents = _written(made, file)
    size = file.stat().st_size
    replaced = f"; {contents.replaced:,} secret{'s were' if contents.replaced != 1 else ' was'} replaced"
    console.say(f"{file}: {len(contents.files) + 1} files, {-(-size // 1024):,} KiB{replaced}; look before you send it")
    for missing, why in contents.missing.items():
        console.say(f"could not be had: {missing}: {why}")


def _written(made: Bundle, file: Path) -> Contents:
    """Whole, or not at all; readable by its owner only."""
    try:
        fd, temporary = tempfile.mkstemp(prefix=f".{file.name[:100]}.", dir=file.parent)
    except OSError as error:
        raise ClusterError(f"{file} cannot be written: {error.strerror}", hint="-o FILE names another place") from error
    try:
        with os.fdopen(fd, "wb") as out:
            contents = made.write(out)
        Path(temporary).replace(file)
    except OSError as error:
        raise ClusterError(f"{file} cannot be written: {error.strerror}", hint="-o FILE names another place") from error
    finally:
        Path(temporary).unlink(missing_ok=True)
    return contents
