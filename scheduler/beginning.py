"""``submit --from``: whether a topology can begin from a savepoint, and how it does (docs/snapshots.md).

All is looked at before anything is started: the description, each file's checksum, and what lies in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from ardea.config import Settings
from ardea.errors import ArdeaError, StateError, UserError
from ardea.plan import LogicalPlan
from ardea.snapshots.manifest import STATE_FILES, text_of
from ardea.snapshots.place import Files, place_at
from ardea.snapshots.savepoint import NUMBER, Savepoint, begin, contents, read
from ardea.state.records import TimelineRecord

NOTHING_STARTED = "nothing was started"


class Beginning(msgspec.Struct, frozen=True):
    """A savepoint that a topology can begin from, less what it does not take over, and the folder where it lies."""

    folder: str
    savepoint: Savepoint

    @classmethod
    def of(cls, folder: str, plan: LogicalPlan, *, drop_state: bool) -> Beginning:
        """``drop_state``: whether state may be left behind that the topology does not have any more.

        Raises:
            NotFound: no savepoint lies there.
            StateError: it is not whole, or cannot be read.
            UserError: the topology cannot begin from it.
        """
        from ardea.scheduler.savepoint_states import Found  # it reads values, for which others need nothing

        settings = Settings.of(plan.config)
        if not settings.remembers:
            raise UserError(
                f"--from: {plan.name} is in the mode {settings.reliability_mode}, which keeps no state; "
                f"{NOTHING_STARTED}",
                hint="set topology.reliability.mode to EFFECTIVELY_ONCE",
            )
        files = place_at(folder)
        with _blaming(folder):
            savepoint = read(files)
            if savepoint.groups != settings.key_groups:
                raise UserError(
                    f"its keys are divided among {savepoint.groups} groups, and {plan.name} has topology.key.groups = "
                    f"{settings.key_groups}",
                    hint=f"submit it with --set topology.key.groups={savepoint.groups}",
                )
            found = Found(plan, savepoint)
            for part, file, content in contents(files, savepoint):
                if file.name.endswith(STATE_FILES):
                    found.look(part.component, part.index, content, file.name)
            found.check(drop_state=drop_state)
        return cls(folder, savepoint.without(found.gone))

    def copy(self, store: Files) -> None:
        """Into the topology's own store.

        Raises:
            StateError: it is not whole any more, or cannot be read or written.
        """
        with _blaming(self.folder):
            begin(place_at(self.folder), store, self.savepoint)

    @property
    def record(self) -> TimelineRecord:
        """With which the topology begins: nobody works in it yet, as after an update."""
        return TimelineRecord(restore=NUMBER, committed=NUMBER)

    @property
    def says(self) -> str:
        """A sentence for people."""
        one, manifest = self.savepoint, self.savepoint.manifest
        at = datetime.fromtimestamp(one.at, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        return (
            f"begins from the savepoint {self.folder}: snapshot {text_of(one.number)} of {one.topology}, taken at "
            f"{at} UTC, {manifest.bytes:,} bytes in {len(manifest.names):,} files"
        )


@contextmanager
def _blaming(folder: str) -> Iterator[None]:
    try:
        yield
    except ArdeaError as error:
        raise type(error)(f"{folder}: {error.message}; {NOTHING_STARTED}", hint=error.hint) from error
    except OSError as error:
        raise StateError(f"{folder}: {error.strerror or error}; {NOTHING_STARTED}") from error
