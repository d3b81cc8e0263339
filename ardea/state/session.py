"""One session with ZooKeeper: connected, connected again, and asked within a deadline."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random

from ardea.errors import StateError
from ardea.state.address import CREDENTIAL, Address
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

log = logging.getLogger("ardea.zookeeper")
_kazoo_log = logging.getLogger("ardea.zookeeper.client")
_kazoo_log.setLevel(logging.ERROR)  # what it says below that has the credential in it


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
        self.timeout = self._wanted = timeout
        self.generation = 0
        self._patience = patience
        self._clock = clock
        self._client: Any = None
        self._connected = threading.Event()
        self._begun = self._lost_at = 0.0
        self._confirmed = (-1, 0.0)  # generation, and when the last answered request was sent
        self._probe: tuple[int, float, Any] | None = None
        self._newest = 0  # the last transaction of the servers' that this process has heard of
        self._starting = threading.Lock()

    # --- the connection ---------------------------------------------------------------------------------------

    def client(self) -> Any:
        """Kazoo's client, which is connecting or connected."""
        with self._starting:
            if self._client is None:
                self._begun = self._lost_at = self._clock()
                self._client = self._start()
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

    def _start(self) -> Any:
        count = len(self.address.hosts.split(","))
        handler = _Handler(self._wanted / 3 / count)
        client = KazooClient(
            hosts=self.address.hosts,
            timeout=self._wanted,
            handler=handler,
            auth_data=[("digest", self.address.credential)] if self.address.credential else None,
            connection_retry=KazooRetry(-1, delay=0.05, max_delay=0.5, max_jitter=0.2, sleep_func=handler.sleep_func),
            logger=_kazoo_log,
        )
        client.add_listener(self._moved)
        self._go_between(client)
        client.start_async()
        return client

    def _go_between(self, client: Any) -> None:
        """Stands where kazoo connects, to know which session timeout the servers have set, and to be let in by all.

        A server turns away whoever has seen a later transaction than itself, and one that has lost what it held does so
        for ever.  This client says that it has seen none.  It needs no such care: each read is behind a ``sync``.
        """
        connect = client._connection._connect

        def connecting(*args: Any) -> Any:
            self._newest = max(self._newest, client.last_zxid)
            client.last_zxid = 0
            read_timeout, connect_timeout = connect(*args)
            self.timeout = connect_timeout * len(client.hosts) / 1000
            return read_timeout, connect_timeout

        client._connection._connect = connecting

    def _moved(self, state: str) -> None:
        """Called on kazoo's thread."""
        if state == KazooState.CONNECTED:
            self._connected.set()
            log.info("connected to ZooKeeper at %s", self.address.hosts)
            return
        if self._connected.is_set():
            self._lost_at = self._clock()
            self._connected.clear()
            log.warning("the connection to ZooKeeper at %s is lost; it is tried again", self.address.hosts)
        if state == KazooState.LOST:
            self._end_generation()
            log.error("the session with ZooKeeper has expired: the leases that this process held are void")

    def _end_generation(self) -> None:
        self._connected.clear()
        self.generation += 1

    def _confirm(self, generation: int, sent: float) -> None:
        if generation == self.generation and (generation, sent) > self._confirmed:
            self._confirmed = generation, sent
            self._look_for_loss()

    def _look_for_loss(self) -> None:
        """After an answer of the leader: what it has seen may be less than what this process has."""
        client, newest = self._client, self._newest
        if client is not None and 0 < client.last_zxid < newest:
            log.error(
                "ZooKeeper at %s has lost what it held: its last transaction is %#x, and this process has seen %#x",
                self.address.hosts,
                client.last_zxid,
                newest,
            )
            self._newest = 0

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


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Leaves time for the other servers when one does not answer at all."""

    def __init__(self, connect_timeout: float) -> None:
        super().__init__()
        self._connect_timeout = connect_timeout

    def create_connection(self, *args: Any, **options: Any) -> Any:
        """A socket, within the time for one server."""
        options["timeout"] = min(options["timeout"], self._connect_timeout)
        return super().create_connection(*args, **options)
