"""One session with ZooKeeper: connected, connected again, and asked within a deadline."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random

from ardea.errors import StateError
from ardea.state.address import CREDENTIAL, SECRETS, Address
from ardea.state.entrance import Entrance
from ardea.state.manager import Unavailable

LOST = (
    ConnectionLoss,
    ConnectionClosedError,
    SessionExpiredError,
    SessionMovedError,
    OperationTimeoutError,
    KazooTimeoutError,
)
"""The answer did not come: whether the request was heard is not known."""

FRUITLESS = 3
"""Connections in a row that are lost unanswered, after which the servers mean it."""
_DROPS = "drops each connection before it answers: it may ask for SASL"

log = logging.getLogger("ardea.zookeeper")


class Session:
    """Connects with the first call and keeps itself connected, in a new session if the old one expired.

    Args:
        address: the servers, the root and the credential.
        timeout: seconds of silence after which the servers drop the session; they may set another.
        patience: seconds that a call waits for an answer, and those after a lost connection for its return.
        clock: seconds, never going back.
    """

    def __init__(
        self, address: Address, timeout: float, patience: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.address = address
        self.generation = 0
        self._patience = patience
        self._clock = clock
        self._client: Any = None
        self._connected = threading.Event()
        self._begun = self._lost_at = 0.0
        self._confirmed = (-1, 0.0)  # generation, and when the last answered request was sent
        self._probe: tuple[int, float, Any] | None = None
        self._at_entry = self._confirmed
        self._fruitless = 0  # connections in a row that were lost before anything was answered
        self._entrance = Entrance(address, timeout, self._enter)
        self._starting = threading.Lock()

    # --- the connection ---------------------------------------------------------------------------------------

    def client(self) -> Any:
        """Kazoo's client, which is connecting or connected."""
        with self._starting:
            if self._client is None:
                self._begun = self._lost_at = self._clock()
                self._client = self._entrance.start(self._moved)
            return self._client

    @property
    def started(self) -> bool:
        """Whether there was a call, and no :meth:`close` since."""
        return self._client is not None

    @property
    def connected(self) -> bool:
        """Whether a server answers at present."""
        return self._connected.is_set()

    @property
    def silence(self) -> float:
        """Seconds since the last answered request was sent, or since the first call; 0 before that."""
        return 0.0 if self._client is None else self._clock() - max(self._confirmed[1], self._begun)

    @property
    def timeout(self) -> float:
        """Seconds of silence after which the servers drop the session."""
        return self._entrance.timeout

    def znode(self, path: str) -> str:
        """Where ZooKeeper has the state's path."""
        return f"{self.address.root}{path}"

    def expires_in(self, generation: int) -> float:
        """Seconds for which the servers keep the session of that generation, whatever happens."""
        confirmed, sent = self._confirmed
        if not generation == confirmed == self.generation:
            return 0.0
        return max(0.0, sent + self.timeout * 2 / 3 - self._clock())

    def probe(self) -> None:
        """Takes the answer of the last probe, and sends one if it is time.  Writes nothing, never waits."""
        if self._probe is not None:
            generation, sent, answer = self._probe
            if not answer.ready():
                return
            if answer.successful():
                self._confirm(generation, sent)
            self._probe = None
        if self.connected and self._clock() - self._confirmed[1] >= self.timeout / 10:
            generation, sent = self.generation, self._clock()
            self._probe = generation, sent, self.client().sync_async(self.address.root)

    def close(self) -> None:
        """Ends the session, and with it its ephemeral nodes.  The next call begins another one."""
        with self._starting:
            client, self._client = self._client, None
        self._probe = None
        if client is not None:
            client.remove_listener(self._moved)
            client.stop()
            client.close()
            self._end_generation()

    def _enter(self) -> None:
        """Called on kazoo's thread, once the servers know who this is."""
        self._at_entry = self._confirmed
        self._connected.set()
        if not self._fruitless:
            log.info("connected to ZooKeeper at %s", self.address.hosts)

    def _moved(self, state: str) -> None:
        """Called on kazoo's thread."""
        if state == KazooState.CONNECTED:
            return  # whether it is let in is not known yet
        if self._connected.is_set():
            self._lost_at = self._clock()
            self._connected.clear()
            self._fruitless = self._fruitless + 1 if self._confirmed is self._at_entry else 0
            if not self._fruitless:
                log.warning("the connection to ZooKeeper at %s is lost; it is tried again", self.address.hosts)
            elif self._fruitless == FRUITLESS:
                log.warning("ZooKeeper at %s %s; it is tried again", self.address.hosts, _DROPS)
        if state == KazooState.LOST:
            if self._confirmed[0] == self.generation:
                log.error("the session with ZooKeeper has expired: the leases that this process held are void")
            self._end_generation()

    def _end_generation(self) -> None:
        self._connected.clear()
        self.generation += 1

    def _confirm(self, generation: int, sent: float) -> None:
        if generation == self.generation and (generation, sent) > self._confirmed:
            self._confirmed = generation, sent
            self._look_for_loss()

    def _look_for_loss(self) -> None:
        """After an answer of the leader: what it has seen may be less than what this process has."""
        client, newest = self._client, self._entrance.newest
        if client is not None and 0 < client.last_zxid < newest:
            log.error(
                "ZooKeeper at %s has lost what it held: its last transaction is %#x, and this process has seen %#x",
                self.address.hosts,
                client.last_zxid,
                newest,
            )
            self._entrance.newest = 0

    # --- calls ------------------------------------------------------------------------------------------------

    def call(self, send: Callable[[Any], Sequence[Any]], what: str) -> list[Any]:
        """The answers to what ``send`` sends by kazoo's client, errors of nodes among them; sent until it is answered.

        One of the requests must be answered by the leader: it is a write, or a sync.

        Raises:
            Unavailable: nobody answers.
        """
        begun, requested = self._clock(), False

        def attempt() -> list[Any]:
            nonlocal requested
            client = self.client()
            if not self._connected.wait(self._remaining(begun)):
                raise ConnectionLoss
            generation, sent = self.generation, self._clock()
            requested = True
            answers = [self._answer(request, begun) for request in send(client)]
            self._confirm(generation, sent)
            return answers

        def out_of_time(_: RetryCallState) -> bool:
            return self._remaining(begun) <= 0

        retrying = Retrying(
            retry=retry_if_exception_type(LOST), stop=out_of_time, wait=wait_random(0.01, 0.1), reraise=True
        )
        try:
            return retrying(attempt)
        except LOST as error:
            raise self._unavailable(what, requested) from error

    def _remaining(self, begun: float) -> float:
        since = begun if self.connected else min(begun, self._lost_at)
        return max(0.0, since + self._patience - self._clock())

    def _answer(self, request: Any, begun: float) -> Any:
        try:
            return request.get(timeout=max(0.01, self._remaining(begun)))
        except LOST:
            raise
        except KazooException as error:
            return error

    def _unavailable(self, what: str, requested: bool) -> Unavailable:
        outcome = "a change may or may not be in force: read it again before relying on it"
        trouble = self._entrance.trouble and f"lets nobody in: {self._entrance.trouble}"
        if trouble := trouble or (_DROPS if self._fruitless >= FRUITLESS else ""):
            return Unavailable(
                f"cannot {what}: ZooKeeper at {self.address.hosts} {trouble}; "
                f"{outcome if requested else 'nothing was changed'}",
                hint=f"see what the servers ask for, and what is in the folder that {SECRETS} names (docs/state.md)",
            )
        return Unavailable(
            f"cannot {what}: no ZooKeeper server answers at {self.address.hosts}; "
            f"{outcome if requested else 'nothing was changed'}",
            hint="see whether a majority of the servers runs and can be reached from here, and whether the address "
            "in --state is right; running topologies go on meanwhile",
        )

    def refusal(self, error: Exception, what: str) -> StateError:
        """An error of a server as one that says what to do."""
        if isinstance(error, NoAuthError):
            return StateError(
                f"cannot {what}: ZooKeeper at {self.address.hosts} does not allow it; nothing was changed",
                hint=f"set {CREDENTIAL}=user:password in the environment to what the nodes were written with",
            )
        return StateError(
            f"cannot {what}: ZooKeeper at {self.address.hosts} says {type(error).__name__} {error}; "
            "nothing was changed",
            hint="see the servers' logs",
        )
