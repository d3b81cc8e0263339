"""``ardea savepoint`` and ``ardea snapshots``: state that stays when the topology goes, and what there is of it."""

from __future__ import annotations

import time
from typing import Annotated, Any

import msgspec
import typer

from ardea.cli import console
from ardea.cli.console import Name, Output, OutputOption, finite
from ardea.cli.tables import fitted
from ardea.documents.kept import KeptDocument, look
from ardea.scheduler.packing.amounts import format_bytes
from ardea.scheduler.savepoint import Saving, Wanted, new_id
from ardea.scheduler.schedulers import Handle, Scheduler
from ardea.snapshots.manifest import text_of
from ardea.snapshots.place import absolute, check_shown
from ardea.snapshots.savepoint import SavepointProgress

SAVED_WITHIN = 60.0
To = Annotated[
    str | None,
    typer.Option("--to", metavar="FOLDER", help="Where the savepoint lies; default: a new folder beside the state."),
]


def savepoint(
    scheduler: Scheduler,
    name: Name,
    to: To = None,
    wait_secs: Annotated[
        float,
        typer.Option("--wait-secs", min=1, callback=finite, help="How long the snapshot, and its copy, may take."),
    ] = SAVED_WITHIN,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy all state of a running topology into a folder that stays.

    Rows keep flowing.  `ardea submit --from` begins from it.  Only the mode EFFECTIVELY_ONCE keeps state.
    """
    with scheduler.find(name) as found:
        done = saved(found, to, wait_secs, ends=False)
        if output is Output.JSON:
            console.print_json({"topology": found.id, **_document(done)})
    console.say(f"the topology goes on; `ardea submit … FILE --from {done.folder}` begins another one from there")


def saved(found: Handle, to: str | None, wait_secs: float, *, ends: bool) -> SavepointProgress:
    """Takes one, with which the topology ``ends``, or goes on; says what it is."""
    check_shown(to, "--to")
    asked = new_id()
    folder = found.savepoint_folder(asked) if to is None else absolute(to)
    ends_too = "; the topology ends with it" if ends else ""
    whole = f"the savepoint may still be taken: it is whole if {folder}/savepoint.json is there{ends_too}"
    with console.interruptible(whole), found.control() as control:
        done = Saving(control, Wanted(found.id, asked, folder, wait_secs, ends), console.say, found.why).save()
    what = f" of snapshot {text_of(done.number)}, {done.bytes:,} bytes in {done.files:,} files," if done.number else ""
    console.say(f"{found.id}: savepoint{what} in {done.folder}")
    return done


def snapshots(scheduler: Scheduler, name: Name, output: OutputOption = Output.TABLE) -> None:
    """List the last snapshot of a topology, and its savepoints.

    Savepoints in the default place are listed also of a topology that is gone.
    """
    document, mode = look(scheduler, name)
    if output is Output.JSON:
        console.print_json(msgspec.to_builtins(document))
        return
    rows = [
        *((each, "snapshot") for each in ([document.committed] if document.committed else [])),
        *((each, "savepoint") for each in document.savepoints),
    ]
    if not rows:
        none = f"the mode {mode} takes no snapshots" if mode else "no snapshot counts yet"
        console.say(f"{document.topology}: {none}, and there are no savepoints")
        return
    now, out = time.time(), console.out()
    columns = ("", "Number", "Timeline", "Age", "Size", "Files", "Topology", "Folder")
    cells = [(what, *_cells(each, now)) for each, what in rows]
    out.print(fitted(columns, cells, out.width, least=("Timeline", "Files")), crop=False)


def _cells(kept: KeptDocument, now: float) -> tuple[str, ...]:
    age = f"{max(0.0, now - kept.at):,.0f} s"
    where = kept.folder or "-"
    return (
        kept.number,
        str(kept.timeline),
        age,
        format_bytes(kept.bytes),
        f"{kept.files:,}",
        kept.topology,
        where,
    )


def _document(done: SavepointProgress) -> dict[str, Any]:
    return {"folder": done.folder, "number": text_of(done.number), "bytes": done.bytes, "files": done.files}
