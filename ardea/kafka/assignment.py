"""What a task does about what a survey has found.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ardea.errors import UserError
from ardea.kafka import beginning
from ardea.kafka.marks import Marks, PartitionId
from ardea.kafka.positions import KeptMarks, Positions
from ardea.kafka.sharing import share, wanted
from ardea.kafka.source import Source, Start, check_end
from ardea.kafka.survey import Span, Survey


class Steps(NamedTuple):
    """``line``: what to commit before anybody reads; partitions to begin with, to leave to others, and deleted ones."""

    line: Mapping[PartitionId, int]
    gained: Mapping[PartitionId, Marks]
    lost: Sequence[PartitionId]
    gone: Sequence[PartitionId]


NOTHING = Steps({}, {}, (), ())


class Assignment:
    """One task's view of which partitions it has.

    Attributes:
        begun: whether there is a line, so that this task may read.
        tasks: how many share the partitions.
        index: which one of them this is.
    """

    def __init__(self, source: Source, run: str, index: int, tasks: int, positions: Positions | None = None) -> None:
        """``positions``: where partitions were in a snapshot, which wins over the group; None: there are none."""
        self._source, self._run = source, run
        self.index, self.tasks = index, tasks
        self._positions = positions
        self.begun = False
        self._bounded: frozenset[PartitionId] | None = None
        if positions is not None and positions.complete:
            self._bounded = frozenset(positions.restored)
        self._missed: set[PartitionId] = set()  # of this task's, those that the last survey did not find

    def needs(self, places: Sequence[PartitionId]) -> Sequence[PartitionId]:
        """The partitions whose spans the next survey has to find."""
        return places if self.index == 0 and not self.begun else share(places, self.index, self.tasks)

    def complete(self, known: Iterable[PartitionId]) -> bool:
        """Whether this task of a bounded spout, which has the known partitions, gets no other one, but by an update."""
        if self._bounded is None:
            return False
        restored = () if self._positions is None else self._positions.restored
        return {*known, *restored}.issuperset(share(self._bounded, self.index, self.tasks))

    @property
    def moments(self) -> list[datetime]:
        """The moments whose offsets it has to find."""
        source = self._source
        return [moment for moment in (source.start, source.otherwise, source.end) if isinstance(moment, datetime)]

    def decide(self, survey: Survey, known: Iterable[PartitionId]) -> Steps:
        """What to do, ``known`` being the partitions that this task has.

        Raises:
            UserError: what is to be read to its end is not there, or another run commits to the group.
        """
        if not self.begun:
            check_end(self._source.end, survey.missing, survey.places)
            if not beginning.drawn(survey.stored, self._run):
                return Steps(self._line(survey), {}, (), ()) if self.index == 0 else NOTHING
            self.begun = True
        places = survey.places
        unread = self._unread()
        if self._source.end is not None:
            if self._bounded is None:
                self._bounded = frozenset([*places, *unread])
            places = tuple(place for place in places if place in self._bounded)
        known, mine = set(known), set(share(places, self.index, self.tasks))
        # A partition that appeared between two steps of the survey has no span yet: next time.
        gained = {place: self._marks(place, survey) for place in sorted(mine - known) if place in survey.spans}
        away = unread.keys() - known - set(survey.places)  # as long as it may come back
        gained |= {place: unread[place] for place in sorted(away)}
        missed = known.union(gained).difference(survey.places)
        gone = missed & self._missed  # at the second look: a broker that has just begun may not know all topics yet
        self._missed = missed
        return Steps({}, gained, sorted(known - mine - missed), sorted(gone))

    def _unread(self) -> Mapping[PartitionId, Marks]:
        """To be read to their ends, and may be away: of those in the snapshot, whatever else is there now."""
        if self._source.end is None or self._positions is None:
            return {}
        unread = self._positions.unread()
        topics = wanted(self._source.topics, {place.topic for place in unread})
        return {place: marks for place, marks in unread.items() if place.topic in topics}

    def _line(self, survey: Survey) -> dict[PartitionId, int]:
        source = self._source
        keep = source.start == "committed"
        start = source.otherwise if keep else source.start
        chosen = {place: _offset(start, place, span, survey) for place, span in survey.spans.items()}
        return beginning.line(survey.places, survey.stored, chosen, keep=keep)

    def _marks(self, place: PartitionId, survey: Survey) -> Marks:
        stored, span = survey.stored.get(place), survey.spans[place]
        positions = self._positions
        if positions is not None and (left := positions.back(place, stored)) is not None:
            return left
        begin = None if positions is None else positions.restored.get(place)
        try:
            if begin is None:
                begin = beginning.resume(stored, span.first, self._run)
        except beginning.Contested as other:
            raise UserError(
                f"topology {other} commits to the same consumer group as {self._run}; {place} was its last",
                hint="Give one of them a group= of its own, or end it.",
            ) from None
        end = self._source.end
        if positions is not None and end is not None and place in positions.ends:
            last: int | None = positions.ends[place]
        elif isinstance(end, Mapping):
            last = end.get(place, 0)
        else:
            last = None if end is None else _offset(end, place, span, survey)
        kind = Marks if positions is None else KeptMarks
        return kind(begin, committed=None if stored is None else stored.offset, end=last)


def _offset(where: Start, place: PartitionId, span: Span, survey: Survey) -> int:
    if isinstance(where, datetime):
        return survey.moments[where][place]
    return span.first if where == "earliest" else span.end
