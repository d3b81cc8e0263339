"""DRPC streams: each request is a batch of its own, and the topology's answer goes back to who asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import msgspec

from ardea.component import Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.drpc import DrpcErrorType, LocalDrpc, Requests, published_path
from ardea.drpc.client import PATIENCE, post
from ardea.errors import FailedException, UserError
from ardea.plan.names import DRPC_LABEL
from ardea.state import open_state, paths
from ardea.trident.processors import BatchRun, Processor
from ardea.trident.store import StateManagerStore, temporary
from ardea.trident.tuples import Row, Rows

ARGS, RETURN, ASKER = "args", "$return", "$asker"
Asker = tuple[str, str]
"""The id of a request, and the address and the token by which its answer goes back; both empty in this process."""
OPEN = 1000
"""Trees that may be open, whatever the topology allows its batches."""
BESIDE = 1024
"""Bytes that a request's row may have beside its argument."""


def labelled(function: str) -> dict[str, Any]:
    """The configuration by which a Service of Kubernetes finds the pod that serves the function."""
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", function):
        return {}  # its name cannot be a label's
    return {"heron.kubernetes.labels": {f"{DRPC_LABEL}{function}": "true"}}


class DrpcAddress(NamedTuple):
    """Where a function's requests come in: in this process, or at an interface and a port."""

    function: str
    local: LocalDrpc | None
    host: str
    port: int

    def reply(self, asker: Asker, text: str, *, failed: bool = False) -> None:
        """Sends an answer, or why there is none.

        Raises:
            OSError: the source of the requests cannot be reached.
        """
        request, way = asker
        if self.local is not None:
            requests = self.local.requests(self.function)
            if failed:
                requests.fail(request, DrpcErrorType.FAILED_REQUEST, text)
            else:
                requests.answer(request, text)
            return
        host, token = way.split()
        try:
            post(host, f"/{'failures' if failed else 'answers'}/{request}", text, PATIENCE, token)
        except HTTPException as error:  # somebody else listens there by now
            raise ConnectionError(f"{host} does not speak HTTP: {error!r}") from error


class _Begun(NamedTuple):
    """A request that the topology works on, since when, and how many reports are not acked."""

    request: str
    at: float
    left: int


class DrpcSpout(Spout):
    """Emits each request as a batch, and answers those that fail."""

    config = MappingProxyType({"topology.max.spout.pending": OPEN, "topology.state.access": True})
    place: ClassVar[DrpcAddress]
    data_streams: ClassVar[Sequence[str]] = ()
    report_stream: ClassVar[str]
    readers: ClassVar[Sequence[str]] = ()

    @temporary()
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Opens the endpoint, if requests come over the network."""
        function, local, host, port = self.place
        settings = Settings.of(config)
        self._targets = [task for reader in self.readers for task in context.component_tasks(reader)]
        self._txid = int(context.now() * 1e6)  # above those of a former life
        self._clock = context.clock
        self._patience = settings.tree_timeout
        self._unreported: dict[int, _Begun] = {}  # by batch
        self._close: Callable[[], None] = lambda: None
        if local is not None:
            if context.state_address:
                raise UserError(
                    f"DRPC function {function} is asked through a LocalDrpc, which works in ardea.testing only",
                    hint="leave it out of new_drpc_stream(): the function is then served over HTTP",
                )
            self._requests, self._way = local.requests(function), ""
            return
        try:
            from ardea.drpc.endpoint import Endpoint
        except ModuleNotFoundError as error:  # in an image of the engine alone
            raise UserError(
                f"DRPC needs {error.name}, which is not installed", hint="pip install 'ardea[drpc]'"
            ) from error
        self._requests = Requests(function, settings.drpc_queue)
        if (most := settings.max_tuple_bytes - BESIDE) <= 0:
            raise UserError(
                f"DRPC function {function}: topology.max.tuple.bytes is {settings.max_tuple_bytes:,}, of which "
                f"{BESIDE:,} are not for the argument; no request would have room",
                hint=f"set it above {BESIDE:,}; unset, it is 10 MiB",
            )
        endpoint = Endpoint(self._requests, host, port, settings.drpc_timeout, most)
        self._close = endpoint.close
        self._way = f"{endpoint.address} {endpoint.token}"
        self.logger.info("DRPC function %s: POST http://%s/drpc/%s", function, endpoint.address, function)
        if context.state_address:
            with open_state(context.state_address, context.state_credential) as state:
                path = published_path(paths.name_of(context.topology_id), function)
                StateManagerStore(state).put(path, f"http://{endpoint.address}")

    def next_tuple(self) -> None:
        """Begins what waits."""
        while (request := self._requests.take()) is not None:
            self._txid += 1
            sent: Counter[int] = Counter()
            asker = (request.id, self._way)
            row = (self._txid, 0, request.args, asker)
            for stream in self.data_streams:
                sent.update(self.emit(row, stream=stream, need_task_ids=True) or ())
            self._unreported[self._txid] = _Begun(request.id, self._clock(), len(self._targets))
            for task in self._targets:
                report = (self._txid, 0, sent[task], asker)
                self.emit(report, tup_id=(self._txid, task), stream=self.report_stream, direct_task=task)
        if self._requests.closed and not self._unreported:
            self.finish()

    def ack(self, tup_id: tuple[int, int]) -> None:
        """A reader, and all behind it, is done with the batch."""
        txid, _ = tup_id
        if txid not in self._unreported:
            return
        begun = self._unreported[txid]
        if begun.left > 1:
            self._unreported[txid] = begun._replace(left=begun.left - 1)
            return
        del self._unreported[txid]
        self._requests.fail(begun.request, DrpcErrorType.INTERNAL_ERROR, "the topology was done and had sent no answer")

    def fail(self, tup_id: tuple[int, int]) -> bool:
        """The request fails, unless the task where it failed has said so; it is not repeated."""
        if (begun := self._unreported.pop(tup_id[0], None)) is None:
            return True
        if self._clock() - begun.at < self._patience:
            reason = "a process of the topology died, or lost a tuple; its logs say more"
            self._requests.fail(begun.request, DrpcErrorType.FAILED_REQUEST, reason)
        else:
            reason = f"{self.place.function} gave no answer within topology.message.timeout.secs ({self._patience:g} s)"
            self._requests.fail(begun.request, DrpcErrorType.SERVER_TIMEOUT, reason)
        return True

    def close(self) -> None:
        """Fails what is open."""
        self._close()


class ReturnResults(Processor):
    """Sends the rows of a request's batch to who asked.  Its parents: the last stream, and where the answers go."""

    def __init__(self, place: DrpcAddress) -> None:
        self._place = place

    def begin(self, run: BatchRun) -> None:
        """No row, and nobody who asked, yet."""
        run.memory[self] = [], []

    def entrance(self, parent: int) -> Callable[[BatchRun, Rows], None]:
        """Rows of the answer, and rows that say where it goes."""

        def take(run: BatchRun, rows: Rows) -> None:
            run.memory[self][parent].extend(rows)

        return take

    def execute(self, run: BatchRun, rows: Rows) -> None:
        """Rows of the answer."""
        self.entrance(0)(run, rows)

    def finish(self, run: BatchRun) -> None:
        """The answer is complete."""
        rows, askers = run.memory.pop(self)
        for (asker,) in askers:
            self._send(asker, rows)

    def _send(self, asker: Asker, rows: Sequence[Row]) -> None:
        try:
            self._place.reply(asker, msgspec.json.encode(rows, enc_hook=str).decode())
        except OSError as error:
            raise FailedException(f"the answer to request {asker[0]} could not be sent: {error}") from error
