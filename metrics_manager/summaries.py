"""The way of one container's summaries: to the acting master, and at the end into a file."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from ardea import parent_link
from ardea.errors import StateError, refused
from ardea.metrics_manager.server import MetricsManager
from ardea.plan.names import MASTER_CONTAINER
from ardea.protocol.addresses import tcp_address
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.wire_pb2 import REFUSED, SUMMARY, Header, Refusal
from ardea.state import MasterWatch, StateManager, Versioned, paths
from ardea.state.records import Incarnations, decode
from ardea.transport import FEW, LINGER_MS, Dialled, Keyring, caller, holder
from ardea.versions import PROTOCOL

LAST_WORD_MS = 50
"""For the last summary, to a master that may have ended."""


class Summaries:
    """Sent once this container's admission is known: the master orders by it what pods have counted in one place."""

    def __init__(
        self,
        manager: MetricsManager,
        state: StateManager,
        master_watch: MasterWatch,
        topology: str,
        container: int,
        ctx: Any,
        keys: Keyring | None,
    ) -> None:
        self.malformed = 0  # messages of masters that were dropped
        self._manager = manager
        self._master_watch = master_watch
        self._container, self._holder = container, parent_link.holder()
        # Masters are admitted by nobody; 0: it is not known yet.
        self._admission = 1 if container == MASTER_CONTAINER else 0
        self._incarnations = paths.incarnations(topology)
        if container != MASTER_CONTAINER:
            state.watch(self._incarnations, self._found_admissions)
        self._context = ctx
        self._keys = keys
        self._master: Dialled | None = None

    def tell_master(self) -> None:
        """Cumulative, so that a lost one heals with the next.

        Raises:
            OtherVersion: the master has refused the last one.
        """
        if (location := self._master_watch.master) is None or not self._admission:
            return
        master = self._reach(tcp_address(location.host, location.port))
        head = Header(kind=SUMMARY, protocol=PROTOCOL).SerializeToString()
        master.send([head, self._manager.summary(self._admission, self._holder)])
        for frames in master.receive(16):
            try:
                if checked(frames).kind == REFUSED:
                    refusal = Refusal.FromString(frames[1])
                    raise refused(refusal.code, refusal.message)
            except MalformedError:
                self.malformed += 1

    def _reach(self, address: str) -> Dialled:
        if self._master is None or self._master.address != address:
            if self._master is not None:
                self._master.close()
            me, peer = caller("x", self._container), holder(MASTER_CONTAINER)
            self._master = Dialled(self._context, me, address, self._keys, peer, FEW)
        return self._master

    def leave(self, folder: Path) -> None:
        """The master may be gone by now: whoever runs the topology adds the final counts up from these."""
        new = folder / "metrics.summary.new"
        with contextlib.suppress(OSError):  # a full disk costs the final counts only
            new.write_bytes(self._manager.summary(self._admission))
            new.rename(new.with_suffix(""))

    def close(self) -> None:
        """What is on its way to a master that has not ended has a second."""
        if self._master is not None:
            self._master.close(LAST_WORD_MS if self._master_watch.final else LINGER_MS)

    def _found_admissions(self, node: Versioned | None) -> None:
        if node is None:
            return
        with contextlib.suppress(StateError):
            known = decode(node.data, Incarnations, self._incarnations).containers.get(self._container)
            if known is not None and known.holder == self._holder:
                self._admission = known.admission
