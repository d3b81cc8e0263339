"""Whether the other end of a link is heard, and whether a second needs a heartbeat.

Where something is on its way, or was lately, each end beats each second.  On a link that rests an end asks when it has
heard nothing for ten seconds, and the other end answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass

SILENT_AFTER = 3
"""Own heartbeats without an answer after which a peer is not heard any more."""
REST_AFTER = 10
"""Seconds without a numbered message after which a link rests, and for which one that rests may be silent."""
PATIENT = REST_AFTER + 2
"""The same silence, for one of the two ends: they do not ask at the same moment."""


@dataclass(slots=True)
class Pulse:
    """Of one end; seconds are counted by :meth:`needs_beat`.

    ``patience``: for how many the peer may be silent while the link rests.
    """

    patience: int = REST_AFTER
    _owes: bool = False  # the peer has asked, and gets a heartbeat with the next second
    _unanswered: int = 0
    _unheard: int = 0
    _still: int = 0
    _numbered: int = 0

    @property
    def silent(self) -> bool:
        """Whether three heartbeats have had no answer."""
        return self._unanswered >= SILENT_AFTER

    def heard(self) -> None:
        """The peer is there; after a silence much has to be said again."""
        if self.silent:
            self._still = 0
        self._unanswered = self._unheard = 0

    def beats(self) -> None:
        """A heartbeat is sent, which asks for an answer."""
        self._unanswered += 1
        self._owes = False

    def needs_beat(self, numbered: int, *, waits: bool) -> bool:
        """Called once a second; ``numbered``: messages with a number, both ways; ``waits``: some are not confirmed."""
        self._unheard += 1
        self._still = 0 if numbered != self._numbered or waits else self._still + 1
        self._numbered = numbered
        return self._owes or not self._rests

    def asked(self) -> bool:
        """What was just heard asks for a heartbeat; whether it gets one at once, and not with the next second."""
        self._owes = not self._rests
        return self._rests

    @property
    def _rests(self) -> bool:
        return self._still >= REST_AFTER and self._unheard < self.patience and not self._unanswered
