"""How long a master's metrics manager stays for those who scrape it, once the topology's final state is told."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ardea.state.records import RunState

FIRST_SCRAPE = 35.0
"""Seconds after the start of ``/metrics`` within which a client that scrapes every 30 s has scraped it once."""
MOST = 64
"""Clients that are remembered, the latest ones."""
RECENTLY = 150.0
"""Seconds before the end: a client that has not scraped within them is not waited for.

More than twice the longest interval that is provided for, a minute.
"""


class Scrapers:
    """The clients that have read ``/metrics``, by address, and when the newest answer to each was made.

    Can be called from any thread.
    """

    def __init__(self) -> None:
        self._newest: dict[str, float] = {}
        self._lock = threading.Lock()

    def answered(self, who: str, made: float) -> None:
        """An answer that was made at ``made`` (seconds, steady) has gone to ``who``."""
        with self._lock:
            self._newest.pop(who, None)
            self._newest[who] = made
            if len(self._newest) > MOST:
                del self._newest[next(iter(self._newest))]

    def come_after(self, moment: float) -> bool | None:
        """Whether each that came recently has had an answer made after ``moment``; None: nobody came."""
        with self._lock:
            recent = [made for made in self._newest.values() if made >= moment - RECENTLY]
        return all(made >= moment for made in recent) if recent else None


class LastScrape:
    """Says when the final state has been scraped, or need not be waited for any longer."""

    def __init__(
        self,
        scrapers: Scrapers,
        told: Callable[[], RunState | None],
        otherwise: Callable[[float], bool],
        *,
        patience: float,
        begun: float,
    ) -> None:
        """Times are seconds on the scrapers' clock.

        Args:
            scrapers: those of this metrics manager.
            told: the final state, once the master of this container has told it.
            otherwise: what :meth:`are_here` says until then: this master may be one that stands by.
            patience: the longest interval of scrapes, and some more.
            begun: since when there has been something to scrape.
        """
        self._scrapers, self._told, self._otherwise = scrapers, told, otherwise
        self._patience, self._begun = patience, begun
        self._since: float | None = None

    def are_here(self, now: float) -> bool:
        """Whether nobody sends, or comes for, anything any more; to be asked from the topology's end on."""
        if (state := self._told()) is None:
            return self._otherwise(now)
        self._since = now if self._since is None else self._since
        come = self._scrapers.come_after(self._since)
        if come is None:  # only a failure is worth waiting for the first one
            return state is not RunState.FAILED or now >= self._begun + FIRST_SCRAPE
        return come or now >= self._since + self._patience
