"""What a topology's folder, and the ports of its containers, have for a bundle; and the secrets that lie there."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ardea.errors import ArdeaError
from ardea.plan.definition import Definition
from ardea.plan.names import CONTAINERS
from ardea.scheduler.exits import ExitRecords
from ardea.scheduler.keys import keys_of
from ardea.scheduler.processes import metrics_ports
from ardea.scheduler.redaction import set_in, written_in
from ardea.scheduler.schedulers import Evidence
from ardea.state.address import CREDENTIAL
from ardea.transport import KEY_FILE

ANSWERS_WITHIN = 5.0
MOST_METRICS = 16 << 20
"""Bytes of one container."""


def evidence(folder: Path, *, running: bool) -> Iterator[Evidence]:
    """How processes have ended, and what each container serves."""
    yield Evidence("exits.json", partial(_exits, folder))
    for number, port in metrics_ports(folder).items() if running else ():
        yield Evidence(f"metrics/container-{number}.prom", partial(_metrics, port))


def secrets(folder: Path) -> Iterator[str]:
    """The token of the control port, secret keys, the credential for the state; of the configuration and the file."""
    if credential := os.environ.get(CREDENTIAL):
        yield credential
        yield credential.partition(":")[2]
    keys = [keys_of(place) / KEY_FILE for place in (folder, *folder.glob(CONTAINERS))]
    for file in (folder / "token", *keys):
        if file.is_file():
            yield file.read_text(errors="replace").strip()
    with contextlib.suppress(ArdeaError, OSError):  # it may be anywhere by now
        definition = Definition.read(folder / "definition")
        yield from set_in({"submitter": definition.config, "topology": definition.shape.config})
        location = definition.location
        file = Path(location if Path(location).is_file() else location.rpartition(":")[0])
        yield from written_in(file.read_text(errors="replace"))


def _exits(folder: Path) -> object:
    return {name: [dataclasses.asdict(end) for end in ends] for name, ends in ExitRecords(folder).read().items()}


def _metrics(port: int) -> bytes:
    url = f"http://127.0.0.1:{port}/metrics"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=ANSWERS_WITHIN) as answer:
        found: bytes = answer.read(MOST_METRICS)
    return found
