"""From an author's file to what a scheduler starts: load, plan, pack, measure.  Nothing is written or started."""

from __future__ import annotations

import getpass
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ardea import __version__, loader
from ardea.code import Code
from ardea.config import Settings
from ardea.config_check import stored
from ardea.errors import ArdeaError, UserError
from ardea.metrics.sinks import check_sinks
from ardea.plan import LogicalPlan, PackingPlan
from ardea.plan.definition import Begins, Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_from_bytes, packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.snapshots.beginning import Beginning
from ardea.snapshots.manifest import text_of
from ardea.snapshots.place import absolute, check_chosen, check_shown
from ardea.snapshots.savepoint import Savepoint
from ardea.state import paths
from ardea.state.records import TopologyRecord
from ardea.versions import FORMAT

NOTHING_STARTED = "nothing was started"
MAX_DEFINITION_BYTES = 900 << 10
"""Compressed.  What a Kubernetes object and a ZooKeeper node can hold, with room to spare."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A topology that is ready to be started.

    ``code``: for a scheduler that keeps it beside the definition; ``begins_from``: a sentence on its savepoint.
    """

    plan: LogicalPlan
    packing: PackingPlan
    definition: Definition
    topology_class: str
    code: Code | None = None
    begins_from: str = ""

    @classmethod
    def of(cls, target: str, overrides: Mapping[str, Any], state_url: str) -> Submission:
        """Loads, validates and packs.

        Args:
            target: ``FILE`` or ``FILE:Class``.
            overrides: configuration that wins over the topology's.
            state_url: the state manager's address.

        Raises:
            NotFound: there is no such file.
            UserError: the file, the topology or a key is wrong, or the plans are too large.
        """
        topology = loader.load(target)
        config = stored(overrides, "the overrides")
        plan = topology.plan(config)
        settings = Settings.of(plan.config)
        check_sinks(settings.metrics_sinks or {})
        check_shown(settings.snapshot_storage, "topology.stateful.storage")
        if settings.remembers:
            check_chosen(settings.snapshot_storage, state_url)
        packing = packing_for(plan.config).pack(plan)
        code = loader.kept(target)
        definition = Definition(
            topology=paths.new_topology_id(plan.name),
            state=state_url,
            location=str(Path(target).absolute()),
            config=config,
            shape=shape_of(plan),
            packing=packing_to_bytes(packing),
            active=settings.initial_status == "ACTIVE",
            code=code.digest,
            format=FORMAT,
        )
        check_size(definition, packing)
        return cls(plan, packing, definition, topology.__qualname__, code)

    @classmethod
    def restored(cls, definition: Definition, topology_class: str, code: Code | None = None) -> Submission:
        """What another process loaded and checked, without loading the author's code."""
        return cls(definition.shape.plan(), packing_from_bytes(definition.packing), definition, topology_class, code)

    def begun_from(self, begins: Begins, *, seen: bool) -> Submission:
        """The same, which begins from that savepoint.

        ``seen``: this process reaches it as masters do, so that what a master would refuse is refused here.

        Raises:
            NotFound: no savepoint lies there.
            StateError: it is not whole, or cannot be read.
            UserError: the topology cannot begin from it.
        """
        settings, name = Settings.of(self.plan.config), self.plan.name
        if not settings.remembers:
            raise UserError(
                f"--from: {name} is in the mode {settings.reliability_mode}, which keeps no state; {NOTHING_STARTED}",
                hint="set topology.reliability.mode to EFFECTIVELY_ONCE",
            )
        says = f"begins from the savepoint {begins.folder}, which its master reads"
        if seen:
            begins = Begins(absolute(begins.folder), begins.drop_state)
            try:
                says = _sentence(Beginning(begins, self.plan, settings.key_groups).look(), begins.folder)
            except ArdeaError as error:
                raise type(error)(f"{error.message}; {NOTHING_STARTED}", hint=error.hint) from error
        return replace(self, definition=msgspec.structs.replace(self.definition, begins=begins), begins_from=says)

    def record(self, now: datetime | None = None) -> TopologyRecord:
        """What the state keeps of who submitted what."""
        shape = self.definition.shape
        return TopologyRecord(
            id=self.definition.topology,
            name=self.plan.name,
            location=self.definition.location,
            topology_class=self.topology_class,
            config=self.definition.config,
            submitted_by=_user(),
            submitted_at=now or datetime.now(UTC),
            submitted_from=socket.gethostname(),
            ardea_version=__version__,
            format=self.definition.format,
            digest=shape.digest,
            components=shape.digests,
        )


def _sentence(one: Savepoint, folder: str) -> str:
    at = datetime.fromtimestamp(one.at, UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    return (
        f"begins from the savepoint {folder}: snapshot {text_of(one.number)} of {one.topology}, taken at {at} UTC, "
        f"{one.bytes:,} bytes in {len(one.manifest.names):,} files"
    )


def check_size(definition: Definition, packing: PackingPlan) -> None:
    """Refuses plans that neither an object of Kubernetes nor a node of ZooKeeper can hold.

    Raises:
        UserError: they are too large.
    """
    size = len(zlib.compress(msgspec.msgpack.encode(definition)))
    if size > MAX_DEFINITION_BYTES:
        tasks = len(packing.instances)
        raise UserError(
            f"the definition and plans of {definition.shape.name} take {size >> 10:,} KiB compressed, with {tasks:,} "
            f"tasks; {MAX_DEFINITION_BYTES >> 10} KiB are possible; nothing was started or changed",
            hint="ask for fewer tasks (par=, tasks=, topology.max.task.parallelism), or shorten the configuration",
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user id without a name
        return "unknown"
