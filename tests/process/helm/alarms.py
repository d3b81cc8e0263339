"""A topology of this machine under a Prometheus that has the chart's rules, which fire sooner here."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ardea.state import paths
from tests.process.engine.running import Running
from tests.process.helm.monitoring import rules
from tests.process.metrics_manager.prometheus import Job, Prometheus

SOONER = (
    (r"for: \w+", "for: 1s"),
    (r"\[(5|10)m\]", "[10s]"),
    (r"\[30m\]", "[180s]"),
    (r"\[(1h|1d)\]", "[120s]"),
    (r"\[(1h|65m):\w+\]", "[120s:1s]"),
    (r"(heartbeat_age_seconds\{[^}]*\}\)) > 30", r"\1 > 3"),
    (r"(silence_seconds\{[^}]*\}) > 60", r"\1 > 4"),
    (r"(interval_seconds\{[^}]*\}\)), 120", r"\1, 4"),
)
"""Times and thresholds of the rules, and what stands for them here."""


def sooner(text: str) -> str:
    """The rule file, whose alerts take seconds; each replacement has something to replace in one of the files."""
    for pattern, replacement in SOONER:
        text = re.sub(pattern, replacement, text)
    return text


class Targets:
    """What a Prometheus scrapes; it follows the file."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "targets.json"
        self.set([])
        self.job: Job = {"honor_labels": True, "file_sd_configs": [{"files": [str(self._file)]}]}

    def set(self, targets: Iterable[tuple[int, dict[str, str]]]) -> None:
        """Ports of this machine, with the labels of each."""
        entries = [{"targets": [f"127.0.0.1:{port}"], "labels": labels} for port, labels in targets]
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(entries))
        new.rename(self._file)


class Alarms:
    """The topology's alerts in the namespace ``here``."""

    def __init__(self, prometheus: Path, folder: Path, topology: Running) -> None:
        self._topology, self._targets = topology, Targets(folder)
        self._id = topology.run.topology
        self._name = paths.name_of(self._id)
        self._prometheus = Prometheus(prometheus, folder, self._targets.job, sooner(rules("here")))

    def scrape(self, *containers: int) -> None:
        """These from now on, labelled as the chart has pods labelled."""
        own = {"namespace": "here", "topology": self._name, "topology_id": self._id}
        roles = {number: "container" if number else "master" for number in containers}
        self._targets.set(
            (self._topology.port(number), {**own, "role": role, "pod": f"pod-{number}"})
            for number, role in roles.items()
        )

    def asked(self, query: str) -> Any:
        """Waits for an answer; the topology's run goes on meanwhile."""

        def something(answer: dict) -> bool:
            if not self._topology.run.over:
                self._topology.run.step()
            return bool(answer)

        return self._prometheus.wait(query, something)

    def fires(self, alert: str) -> None:
        """Waits until it fires, for this topology, by its name and its id."""
        labels = f'alertname="{alert}", alertstate="firing", topology="{self._name}", topology_id="{self._id}"'
        self.asked(f"ALERTS{{{labels}}}")

    def firing(self) -> set[str]:
        """What fires now."""
        return {alert for (alert,) in self._prometheus.ask('group by (alertname) (ALERTS{alertstate="firing"})')}

    def close(self) -> None:
        self._prometheus.close()
