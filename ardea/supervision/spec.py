"""What a supervisor is asked to run: the processes and the policy, as values and as a JSON file."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ardea.errors import ConfigError
from ardea.logs import FORMATS, Format

STARVED = 10
"""Times the startup for a process that gets no core: started again, it would need as much anew."""
RESTARTED = "a restart was asked for"
"""The reason of an end that says nothing against the process."""
_NAME = re.compile(r"[^/\0\s.][^/\0\s]*")


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """One process.

    Attributes:
        name: unique, without ``/`` or blanks, such as ``count-1``; names its log, life and records.
        argv: the command; ``argv[0]`` is looked up in PATH.
        env: added to the supervisor's own environment.
        ram: resident bytes above which it is killed and started again; None: not watched.
        restart: ``always`` unless it exits 0 or 78; ``never``: any end but exit 0 stops the rest too.
        version: of what it runs: one whose version changes in the specification is started again.
        leads: its exit 0 says that the work of all is done: the others have the grace to end by themselves.  76 says
            that another container has this one's place: the others are stopped.
        cores: how many it may keep busy: OMP_NUM_THREADS, OPENBLAS_NUM_THREADS and MKL_NUM_THREADS for libraries for
            arrays, where the supervisor's environment does not say.  None: one thread for each core of the machine.
        debugged: a debugger may hold it: it is never killed or reported for its silence.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    ram: int | None = None
    restart: Literal["always", "never"] = "always"
    leads: bool = False
    version: str = ""
    cores: int | None = None
    debugged: bool = False

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ConfigError(f"process name {self.name!r}: must be non-empty, without '/', blanks or a leading '.'")
        if not self.argv:
            raise ConfigError(f"process {self.name}: argv is empty")
        if self.cores is not None and self.cores < 1:
            raise ConfigError(f"process {self.name}: cores is {self.cores}; must be 1 or more, or null")
        if self.ram is not None and self.ram <= 0:
            raise ConfigError(f"process {self.name}: ram is {self.ram} bytes; must be above 0, or null")
        if self.restart not in ("always", "never"):
            raise ConfigError(f"process {self.name}: restart is {self.restart!r}; must be 'always' or 'never'")
        for name in ("leads", "debugged"):
            if not isinstance(value := getattr(self, name), bool):
                raise ConfigError(f"process {self.name}: {name} is {value!r}; must be true or false")


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient a supervisor is (seconds), and how much log it keeps of each process.

    Attributes:
        silence: without a beat for so long, a process is killed, or reported if its user code is at work.
        startup: what a process has for its first beat, as long as it is at work; ten times as much where it has hardly
            got a core.
        report: a call of user code that takes so long is reported, and each time so much longer.
        grace: from SIGTERM to SIGKILL, and from the exit of one that leads to SIGTERM.
        log_bytes: a log file that would grow beyond is rotated.
        log_files: how many are kept, the current one included.
        log_format: of the supervisor's own lines: ``text`` or ``json``.
        preload: modules that a process loads once, of which processes ``python -P -m MODULE`` are forked (Linux).
            Empty: each is started for itself.
    """

    silence: float = 10.0
    startup: float = 30.0
    report: float = 30.0
    grace: float = 10.0
    log_bytes: int = 100 << 20
    log_files: int = 5
    log_format: Format = "text"
    preload: tuple[str, ...] = ()

    def first_beat(self, cpu: float, ready: bool) -> float:
        """Seconds for the first beat of a process that has used ``cpu`` seconds; ``ready``: it would work on."""
        return STARVED * self.startup if ready and cpu < self.startup else self.startup

    def __post_init__(self) -> None:
        for setting in dataclasses.fields(self):
            value = getattr(self, setting.name)
            if setting.name == "preload":
                if not isinstance(value, tuple) or not all(isinstance(module, str) for module in value):
                    raise ConfigError(f"policy.preload is {value!r}; must be names of modules")
            elif setting.name == "log_format":
                if value not in FORMATS:
                    raise ConfigError(f"policy.log_format is {value!r}; must be one of {', '.join(FORMATS)}")
            elif isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ConfigError(f"policy.{setting.name} is {value!r}; must be a number above 0")


def dump(processes: Sequence[ProcessSpec], policy: Policy) -> str:
    """The JSON text that ``python -m ardea.supervisor --spec`` reads."""
    rows = [dataclasses.asdict(process) for process in processes]
    return json.dumps({"policy": dataclasses.asdict(policy), "processes": rows}, indent=1)


def load(path: Path) -> tuple[list[ProcessSpec], Policy]:
    """What ``dump`` wrote; keys with a default may be left out.

    Raises:
        ConfigError: the file is unreadable, not JSON, or says something unknown.
    """
    try:
        document = json.loads(path.read_text())
        unknown = document.keys() - {"policy", "processes"}
        if unknown:
            raise ConfigError(f"unknown key {min(unknown)!r}")
        processes = [_process(row) for row in document["processes"]]
        return processes, _policy(document.get("policy", {}))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, ConfigError) as error:
        what = f"no key {error}" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"supervisor: the specification {path} cannot be used: {what}; nothing was started",
            hint="write it with ardea.supervision.spec.dump; its keys are in docs/supervisor.md",
        ) from error


class SpecFile:
    """The file that a supervisor's processes are from.  Another file in its place changes what runs."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, _stamp(path)

    def news(self) -> list[ProcessSpec] | None:
        """The processes, if the file was replaced since the last call.

        Raises:
            ConfigError: as :func:`load`; what was there before holds.
        """
        if (stamp := _stamp(self._path)) in (self._read, None):
            return None
        self._read = stamp
        return load(self._path)[0]


def _stamp(path: Path) -> tuple[int, int] | None:
    """Tells one version of a file from the next, which has replaced it; None: there is none."""
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None


def _policy(row: dict[str, Any]) -> Policy:
    if isinstance(row.get("preload"), list):
        row = {**row, "preload": tuple(row["preload"])}
    return Policy(**row)


def _process(row: dict[str, Any]) -> ProcessSpec:
    if isinstance(row["argv"], str):
        raise ConfigError(f"process {row.get('name')}: argv must be a list of strings")
    return ProcessSpec(**{**row, "argv": tuple(row["argv"])})
