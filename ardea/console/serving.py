"""A console that runs: its socket, its server, its link."""

from __future__ import annotations

import socket
from collections.abc import Callable
from urllib.parse import quote

import uvicorn

from ardea.console import decoding
from ardea.console.app import application
from ardea.console.asking import Asker
from ardea.console.desk import Desk
from ardea.console.pages import read
from ardea.console.prometheus import Prometheus
from ardea.console.questions import PACES, Questions
from ardea.console.tokens import Hosts, Tokens
from ardea.drpc.connections import BoundedConnection
from ardea.errors import ClusterError
from ardea.scheduler.registry import Place

LOOPBACK = "127.0.0.1"
CLOSE_WITHIN = 3
"""Seconds that open requests have when the console is stopped."""


def listen(address: str, port: int) -> socket.socket:
    """A socket that listens; ``port`` 0: any that is free.

    Raises:
        ClusterError: it is taken, or not this machine's.
    """
    try:
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    except OSError as error:
        raise ClusterError(
            f"the console cannot listen at {address}:{port}: {error.strerror or error}",
            hint="choose another --port, or 0 for a free one",
        ) from error


def link(opened: socket.socket, token: str, topology: str | None = None) -> str:
    """What a person opens; what stands after ``#`` is in no log of requests."""
    where = f"&topology={quote(topology, safe='')}" if topology else ""
    return f"http://{LOOPBACK}:{opened.getsockname()[1]}/#token={token}{where}"


def serve(
    place: Place,
    opened: socket.socket,
    tokens: Tokens,
    hosts: Hosts,
    ready: Callable[[], None],
    prometheus: Prometheus | None = None,
) -> None:
    """Returns when a signal has stopped it.

    Args:
        place: where the topologies are.
        opened: where to listen.
        tokens: who may do what.
        hosts: by what names it is reached.
        ready: is called when it is about to answer.
        prometheus: knows hours and days; None: fifteen minutes are shown.
    """
    with place.open() as scheduler:
        decoding.prepare()  # of its modules, too
        desk = Desk(
            place=place,
            scheduler=scheduler,
            asker=Asker(Questions(scheduler, prometheus).all, PACES),
            tokens=tokens,
            hosts=hosts,
            files=read(),
            longer=prometheus is not None,
        )
        config = uvicorn.Config(
            application(desk),
            http=BoundedConnection,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSE_WITHIN,
        )
        ready()
        uvicorn.Server(config).run(sockets=[opened])
