"""The progress of a run on stderr: a line that changes on a terminal, a line each ten seconds elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from rich.console import Console
from rich.control import Control
from rich.segment import ControlType
from rich.text import Text

from ardea.cli import console
from ardea.metrics import Totals

WINDOW = 5.0
"""Seconds over which rates and latencies are taken."""
PLAIN_EVERY = 10.0
SILENT_AFTER = 5.0
_CLEAR = Control((ControlType.CARRIAGE_RETURN,), (ControlType.ERASE_IN_LINE, 2))


class Rates:
    """What the spouts did lately: pure, fed with what the master says."""

    def __init__(self, spouts: Collection[str]) -> None:
        """``spouts``: the components that count."""
        self._spouts = sorted(spouts)
        self._seen: deque[tuple[float, dict[str, Totals]]] = deque()
        self._jobs: list[str] = []

    def observe(self, now: float, components: dict[str, Totals]) -> None:
        """The totals at ``now`` (seconds, steady); equal ones are the same news, told again.

        A new master hears of the tasks by and by.  Rates begin anew with it, and with each task that it hears of.
        """
        self._jobs = jobs(components)
        spouts = {name: components.get(name, Totals()) for name in self._spouts}
        if self._seen:
            former = self._seen[-1][1]
            if former == spouts:
                return
            if any(each.acked < former[name].acked or each.tasks > former[name].tasks for name, each in spouts.items()):
                self._seen.clear()
        self._seen.append((now, spouts))
        while len(self._seen) > 2 and now - self._seen[1][0] >= WINDOW:
            self._seen.popleft()

    def line(self, now: float) -> str:
        """``p50 31 ms p99 80 ms · lines 203,411/s · acked 1,204,000 · failed 9 (2 timed out) · pending 20,000``.

        A narrow terminal cuts off what matters least.  Behind it the jobs that components run elsewhere,
        ``orders_driver 34/120 tasks``.
        """
        if not self._seen:
            return ""
        (since, first), (_, last) = self._seen[0], self._seen[-1]
        lately = {name: totals.since(first[name]) for name, totals in last.items()}
        # Nothing new for a while is a rate that falls, not one that stands.
        elapsed = max(now, self._seen[-1][0]) - since if now - self._seen[-1][0] > 2.0 else self._seen[-1][0] - since
        total, recent = Totals.of_all([*last.values()]), Totals.of_all([*lately.values()])
        low, high = recent.quantile(0.5), recent.quantile(0.99)
        parts = [] if low is None or high is None else [f"p50 {seconds(low)} p99 {seconds(high)}"]
        parts += [f"{name} {_rate(totals.acked, elapsed)}/s" for name, totals in lately.items()]
        parts += [f"acked {total.acked:,}", f"failed {failures(total)}", f"pending {total.pending:,}"]
        return " · ".join([*parts, *self._jobs])


def jobs(components: Mapping[str, Totals]) -> list[str]:
    """How far each job is that a component runs in Spark at present: ``orders_driver 34/120 tasks``."""
    return [
        f"{name} {totals.job_tasks_done:,}/{totals.job_tasks:,} tasks"
        for name, totals in sorted(components.items())
        if totals.job_tasks
    ]


def batches(components: Mapping[str, Totals]) -> list[str]:
    """How far each component is that works in batches: a driver of a stream from Spark, a coordinator of Trident."""
    return [
        f"{name} {totals.batch:,.0f} micro-batches, {totals.batches_open:,.0f} not acked"
        if totals.batches_open is not None
        else f"{name} batch {totals.batch:.0f} committed" + (_each(totals) if totals.batch else "")
        for name, totals in sorted(components.items())
        if totals.batch is not None
    ]


def _each(totals: Totals) -> str:
    return f", {seconds(totals.batch_latency_ms / 1000)} each" if totals.batch_latency_ms else ""


def failures(spouts: Totals) -> str:
    """How many trees of spouts failed, however: ``1,204``; ``1,204 (200 timed out)``."""
    timed_out = f" ({spouts.timed_out:,} timed out)" if spouts.timed_out else ""
    return f"{spouts.failed + spouts.timed_out + spouts.lost:,}{timed_out}"


class Display:
    """Where the line goes.  Other output is written between :meth:`clear` and the next :meth:`show`."""

    def __init__(self, screen: Console, name: str) -> None:
        """``screen``: of stderr."""
        self._screen, self._name = screen, name
        self._live = console.draws(screen)
        self._drawn = False
        self._next_plain = PLAIN_EVERY

    def show(self, state: str, elapsed: float, line: str) -> None:
        """Draws the line; without a terminal only when ten seconds have passed."""
        if self._live:
            self.clear()
            text = Text.assemble((self._name, "bold"), f" {state} ", (f"{elapsed:.0f} s", "dim"), f" {line}")
            text.truncate(self._screen.width - 1, overflow="ellipsis")
            self._screen.print(text, end="", soft_wrap=True)
            self._drawn = True
        elif elapsed >= self._next_plain:
            self._next_plain = elapsed + PLAIN_EVERY
            self._screen.print(f"{self._name} {state} {elapsed:.0f} s {line}", soft_wrap=True, highlight=False)

    def clear(self) -> None:
        """Removes the line."""
        if self._drawn:
            self._screen.control(_CLEAR)
            self._drawn = False


class Silence:
    """Says once that a component has emitted nothing for a while: whoever looks on cannot tell that from a fault."""

    def __init__(self, component: str, now: float) -> None:
        """``now``: seconds, steady."""
        self._component, self._since = component, now
        self._over = False

    def look(self, now: float, *, heard: bool) -> None:
        """``heard``: something has come by now."""
        self._over = self._over or heard
        if not self._over and now - self._since >= SILENT_AFTER:
            self._over = True
            console.say(
                f"{self._component} has emitted nothing for {SILENT_AFTER:g} s; what it emits is shown as it comes"
            )


def seconds(value: float) -> str:
    """``850 µs``, ``3.1 ms``, ``2.0 s``."""
    for limit, factor, unit in ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms")):
        if value < limit:
            scaled = value * factor
            return f"{scaled:.1f} {unit}" if scaled < 10 else f"{scaled:.0f} {unit}"
    return f"{value:.1f} s"


def _rate(count: int | float, elapsed: float) -> str:
    return f"{count / elapsed:,.0f}" if elapsed > 0 else "0"
