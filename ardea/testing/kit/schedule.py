"""Which faults happen when: from a seed, or from the journal of a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self

import msgspec

from ardea.errors import UserError
from ardea.testing.cluster import Cluster


class Kind(StrEnum):
    """What is done to a process, or to a link."""

    KILL = "kill"
    FREEZE = "freeze"
    CUT = "cut"
    DELAY = "delay"


ON_LINKS = (Kind.CUT, Kind.DELAY)
WEIGHTS = {Kind.KILL: 6, Kind.FREEZE: 2, Kind.CUT: 3, Kind.DELAY: 2}
LONGEST = {Kind.KILL: 0.0, Kind.FREEZE: 15.0, Kind.CUT: 4.0, Kind.DELAY: 4.0}
LONGEST_DELAY = 1.0


class Fault(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One fault, and one line of a journal.

    ``at`` and ``seconds`` (how long a freeze, cut or delay lasts) are seconds; ``other`` is the far end of a link;
    ``by`` is what a delay adds to the way of each byte.  ``pid`` and ``life`` say whom it met; a replay ignores them.
    """

    at: float
    kind: Kind
    target: str
    other: str = ""
    seconds: float = 0.0
    by: float = 0.0
    pid: int = 0
    life: int = 0


@dataclass(frozen=True, slots=True)
class Targets:
    """What faults can befall: processes by name, and links as pairs of names."""

    processes: Sequence[str]
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Schedule:
    """Faults in the order of their times."""

    faults: tuple[Fault, ...]

    @classmethod
    def seeded(cls, seed: int, targets: Targets, *, faults: int, seconds: float) -> Self:
        """The same seed gives the same schedule.

        Args:
            seed: decides everything.
            targets: what may be hit; each kind of fault that has none is left out.
            faults: how many.
            seconds: the last one begins before.

        Raises:
            UserError: there is nothing to hit.
        """
        kinds = [k for k in Kind if (targets.links if k in ON_LINKS else targets.processes)]
        if not kinds:
            raise UserError("a schedule needs a process or a link to hit, and the targets name none")
        dice = random.Random(f"faults of {seed}")
        times = sorted(dice.uniform(0.0, seconds) for _ in range(faults))
        return cls(tuple(_draw(dice, at, kinds, targets) for at in times))

    @classmethod
    def read(cls, journal: Path) -> Self:
        """The faults of a journal, to happen again at the same times.

        Raises:
            UserError: the file cannot be read, or a line is not a fault.
        """
        try:
            lines = journal.read_bytes().splitlines()
        except OSError as error:
            raise UserError(f"the journal {journal} cannot be read: {error.strerror}") from error
        found = []
        for number, line in enumerate(lines, 1):
            try:
                found.append(msgspec.json.decode(line, type=Fault))
            except ValueError as error:
                raise UserError(f"{journal}:{number} is not a fault: {error}") from error
        return cls(tuple(sorted(found, key=lambda fault: fault.at)))

    def shrunk(self, fails: Callable[[Schedule], bool]) -> Schedule:
        """The fewest of these faults, as far as leaving some out shows, with which a run still fails.

        ``fails`` runs them all again, so that a run has to go the same way each time, as a simulated one does.
        """
        faults, part = self.faults, len(self.faults) // 2
        while part:
            start = 0
            while start < len(faults):
                fewer = Schedule(faults[:start] + faults[start + part :])
                if fails(fewer):
                    faults = fewer.faults
                else:
                    start += part
            part //= 2
        return Schedule(faults)

    def simulated(self) -> list[tuple[float, Callable[[Cluster], object]]]:
        """The same, as ``faults=`` of :func:`ardea.testing.run` and :class:`ardea.testing.Cluster`.

        Raises:
            UserError: it names a metrics manager, which a simulated cluster does not have.
        """
        return [(fault.at, _simulated(fault)) for fault in self.faults]


def _draw(dice: random.Random, at: float, kinds: Iterable[Kind], targets: Targets) -> Fault:
    kinds = list(kinds)
    [kind] = dice.choices(kinds, [WEIGHTS[k] for k in kinds])
    seconds = round(dice.uniform(0.0, LONGEST[kind]), 3)
    by = round(dice.uniform(0.0, LONGEST_DELAY), 3) if kind is Kind.DELAY else 0.0
    target, other = dice.choice(targets.links) if kind in ON_LINKS else (dice.choice(targets.processes), "")
    return Fault(at=round(at, 3), kind=kind, target=target, other=other, seconds=seconds, by=by)


def _simulated(fault: Fault) -> Callable[[Cluster], object]:
    one, other = fault.target, fault.other
    if one.startswith("metrics-"):
        raise UserError(f"a simulated cluster cannot {fault.kind.value} {one}: it has no metrics managers")
    if fault.kind is Kind.KILL:
        return lambda cluster: cluster.kill(one)
    if fault.kind is Kind.FREEZE:
        return lambda cluster: cluster.freeze(one, fault.seconds)

    def link(cluster: Cluster) -> None:
        if fault.kind is Kind.CUT:
            cluster.network.cut(one, other)
        else:
            cluster.network.delay(one, other, fault.by)
        # Only now: of two events at one time either may come first.
        cluster.at(cluster.time + fault.seconds, lambda cluster: cluster.network.heal(one, other))

    return link
