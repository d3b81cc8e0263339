"""A real Prometheus: Debian's server, started by a test."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

from tests.machine import out_of_patience, patient
from tests.process.ports import free_ports

Job = dict[str, Any]
"""One entry of ``scrape_configs``."""


def local(*ports: int, **labels: str) -> Job:
    """Scrapes some ports of this machine."""
    return {"static_configs": [{"targets": [f"127.0.0.1:{port}" for port in ports], "labels": labels}]}


class Prometheus:
    """The server on ``port``, or a free one, scraping twice a second."""

    def __init__(self, binary: Path, folder: Path, job: Job, rules: str = "", port: int | None = None) -> None:
        """``job`` needs no name; ``rules`` is the text of a rule file."""
        often = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
        config = folder / "prometheus.yml"  # JSON is YAML, too
        config.write_text(
            json.dumps({"global": often, "rule_files": ["rules.yml"], "scrape_configs": [{"job_name": "ardea", **job}]})
        )
        (folder / "rules.yml").write_text(rules or "groups: []")
        port = port or free_ports(1)[0]
        self.url = f"http://127.0.0.1:{port}"
        self._log = folder / "prometheus.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    binary,
                    f"--config.file={config}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )

    def get(self, path: str, **query: str) -> Any:
        with urlopen(f"{self.url}/api/v1/{path}?{urlencode(query)}", timeout=patient(20)) as response:
            return json.load(response)["data"]

    def ask(self, query: str) -> dict[tuple[str, ...], float]:
        """An instant query: label values other than the scrape's own → value."""
        found = {}
        for row in self.get("query", query=query)["result"]:
            labels = {k: v for k, v in row["metric"].items() if k not in {"__name__", "instance", "job"}}
            found[tuple(labels[name] for name in sorted(labels))] = float(row["value"][1])
        return found

    def wait(self, query: str, condition: Callable[[dict[tuple[str, ...], float]], object]) -> dict:
        """Asks until the answer fulfils the condition."""
        began, tick, answer = time.monotonic(), threading.Event(), None
        while not out_of_patience(began, 120):
            assert self._process.poll() is None, f"prometheus ended: {self._log.read_text()}"
            try:
                answer = self.ask(query)
            except OSError:  # it is not listening yet, or does not answer in time
                answer = None
            if answer is not None and condition(answer):
                return answer
            tick.wait(0.1)
        raise AssertionError(f"{query} stayed at {answer}; its log: {self._log.read_text()[-2000:]}")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
