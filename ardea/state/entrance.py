"""How a process gets in at ZooKeeper: kazoo's client with TLS, SASL and a credential, and what keeps it out."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.connection import ConnectionDropped
from kazoo.retry import KazooRetry

from ardea.errors import UserError
from ardea.state.address import Address, Secrets

log = logging.getLogger("ardea.zookeeper")
_kazoo_log = logging.getLogger("ardea.zookeeper.client")
_kazoo_log.setLevel(logging.ERROR)  # what it says below that has the credential in it


class Entrance:
    """Makes clients that come in, whatever they and the servers have seen of each other.

    Args:
        address: the servers, and what they want to see.
        timeout: seconds of silence after which the servers drop a session; they may set another.
        entered: called on kazoo's thread each time that a client may ask.
    """

    def __init__(self, address: Address, timeout: float, entered: Callable[[], None]) -> None:
        self.timeout = self._wanted = timeout
        self.newest = 0
        """The last transaction of the servers' that this process had heard of when it last lost them."""
        self.trouble = ""
        """What kept the last client out, as far as it was more than that nobody answered."""
        self._address = address
        self._entered = entered

    def start(self, moved: Callable[[str], None]) -> Any:
        """A client that is connecting, and does so again after each loss; ``moved`` is its listener."""
        address, secrets = self._address, self._address.secrets
        count = len(address.hosts.split(","))
        handler = _Handler(self._wanted / 3 / count, (lambda: _context(secrets)) if address.tls else None)
        client = KazooClient(
            hosts=address.hosts,
            timeout=self._wanted,
            handler=handler,
            auth_data=[("digest", address.credential)] if address.credential else None,
            sasl_options=_sasl(secrets),
            connection_retry=KazooRetry(-1, delay=0.05, max_delay=0.5, max_jitter=0.2, sleep_func=handler.sleep_func),
            logger=_kazoo_log,
        )
        client.add_listener(moved)
        self._go_between(client)
        client.start_async()
        return client

    def _go_between(self, client: Any) -> None:
        """Stands where kazoo connects, to know which session timeout the servers have set, and to be let in by all.

        A server turns away whoever has seen a later transaction than itself, and one that has lost what it held does so
        for ever.  This client says that it has seen none.  It needs no such care: each of its reads follows a ``sync``.

        Whatever keeps it out, it tries again: a password may have been changed at the servers first.
        """
        connection = client._connection
        connect = connection._connect

        def connecting(*args: Any) -> Any:
            self.newest = max(self.newest, client.last_zxid)
            client.last_zxid = 0
            try:
                if connection.sasl_options is not None:
                    connection.sasl_options = _sasl(self._address.secrets)
                read_timeout, connect_timeout = connect(*args)
            except Exception as error:
                self._note(_trouble(error))
                if isinstance(error, (ConnectionDropped, KazooTimeoutError, SessionExpiredError)):
                    raise
                raise ConnectionDropped(self.trouble) from error  # else kazoo gives up
            self.trouble = ""
            self.timeout = connect_timeout * len(client.hosts) / 1000
            self._entered()
            return read_timeout, connect_timeout

        connection._connect = connecting

    def _note(self, trouble: str) -> None:
        if trouble and trouble != self.trouble:
            log.warning("ZooKeeper at %s lets nobody in: %s; it is tried again", self._address.hosts, trouble)
        self.trouble = trouble or self.trouble


def _context(secrets: Secrets | None) -> ssl.SSLContext:
    """Read anew for each connection, so that certificates can be replaced.  A CA of one's own is the only one."""
    context = ssl.create_default_context(cafile=secrets.path("ca.crt") if secrets else None)
    if secrets and (certificate := secrets.path("tls.crt")):
        context.load_cert_chain(certificate, secrets.path("tls.key"))
    return context


def _sasl(secrets: Secrets | None) -> dict[str, str] | None:
    if secrets is None or (found := secrets.sasl) is None:
        return None
    return {"mechanism": "DIGEST-MD5", "username": found[0], "password": found[1]}


def _trouble(error: Exception) -> str:
    """Why somebody who was there did not let the client in; empty: nobody was there, or what was cannot be known."""
    reason = error.__context__ if isinstance(error, ConnectionDropped) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"TLS: the server's certificate: {reason.verify_message}"
    if isinstance(reason, ssl.SSLError):
        return f"TLS: {_tls_trouble(reason.reason or str(reason))}"
    if isinstance(reason, AuthFailedError):
        return "SASL: the servers do not accept this user and password"
    if isinstance(reason, UserError):
        return str(reason)
    expected = isinstance(error, (ConnectionDropped, KazooTimeoutError, SessionExpiredError))
    return "" if expected else f"{type(error).__name__} {error}"


def _tls_trouble(reason: str) -> str:
    if "CERTIFICATE" in reason or "UNKNOWN_CA" in reason:
        return f"the server does not accept this client's certificate, or wants one ({reason})"
    if "EOF" in reason or "WRONG_VERSION" in reason:
        return f"the server breaks off; its port may not be one for TLS ({reason})"
    return reason


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """Leaves time for the other servers when one does not answer at all; encrypts with ``context``."""

    def __init__(self, connect_timeout: float, context: Callable[[], ssl.SSLContext] | None) -> None:
        super().__init__()
        self._connect_timeout = connect_timeout
        self._context = context

    def create_connection(self, *args: Any, hostname: str, **options: Any) -> Any:
        """A socket, within the time for one server; kazoo does not look at the host's name, and trusts every CA."""
        options["timeout"] = min(options["timeout"], self._connect_timeout)
        made = super().create_connection(*args, hostname=hostname, **options)
        if self._context is None:
            return made
        try:
            return self._context().wrap_socket(made, server_hostname=hostname)
        except BaseException:
            made.close()
            raise
