"""Which events a topology's root gets of its snapshots, and which it does not get again."""

from __future__ import annotations

import pytest

from ardea.errors import StateError, TimedOut
from ardea.scheduler.control import Status
from ardea.scheduler.kubernetes.kept import LISTED_WITHIN, listed
from ardea.scheduler.kubernetes.snapshot_events import ROLLBACKS_EVERY, News, SnapshotEvents
from ardea.snapshots.kept import Kept, Listing
from ardea.snapshots.savepoint import SavepointProgress
from ardea.snapshots.status import LastRollback, LastSnapshot, SnapshotStatus

KEPT = Kept("words-1", 5, 1, 7.0, 100, 2)


def status(savepoint=None, kept=None, *, remembers=True, **snapshots):
    taken = SnapshotStatus(mode="EFFECTIVELY_ONCE", state="RUNNING", timeline=1, interval=1.0, **snapshots)
    return Status(
        "words-1", "RUNNING", "", 1, 1, [], [], 0, [], None, {}, {}, [],
        savepoint=savepoint, kept=kept, snapshots=taken if remembers else None,
    )  # fmt: skip


@pytest.fixture
def news():
    events = SnapshotEvents()
    return lambda now=0.0, **said: list(events.news(status(**said), now))


def test_snapshots_that_were_abandoned_are_told_at_the_third_and_when_one_counts_again(news):
    last = LastSnapshot(number="1.9")
    assert news(abandoned=2, why="a store", last=last) == []
    said = "3 snapshots in a row were abandoned, the last one because of a store"
    assert news(abandoned=3, why="a store", last=last) == [News("Warning", "SnapshotsAbandoned", said)]
    assert news(abandoned=4, why="a store", last=last) == []
    assert news(last=last) == [News("Normal", "SnapshotCommitted", "snapshot 1.9 counts")]
    assert news(last=last) == []


def test_rollbacks_are_told_at_most_once_a_minute_and_counted(news):
    task = LastRollback("task", "count-0 has a new life", 1.0)
    assert news(0.0, rollbacks=1, rollback=task) == [News("Warning", "RolledBack", "count-0 has a new life")]
    assert news(1.0, rollbacks=1, rollback=task) == []
    error = LastRollback("error", "count-1: no space", 1.0)
    assert news(2.0, rollbacks=3, rollback=error) == []
    assert news(ROLLBACKS_EVERY, rollbacks=3, rollback=error) == [
        News("Warning", "RolledBack", "count-1: no space; 2 rollbacks since the last event")
    ]


def test_each_savepoint_is_told_once(news):
    taking = SavepointProgress(id="a", step="copying", folder="/there")
    done = SavepointProgress(id="a", step="done", folder="/there", number=1 << 32 | 5, bytes=1_000, files=4)
    assert news(savepoint=taking) == []
    assert news(savepoint=done) == [
        News("Normal", "SavepointWritten", "snapshot 1.5, 1,000 bytes in 4 files, in /there")
    ]
    assert news(savepoint=done) == []


class Control:
    """A master whose answers have these of it, by the request."""

    def __init__(self, *answers, remembers=True):
        self.asked, self._answers, self._remembers = [], list(answers), remembers

    def ask(self, verb, **arguments):
        self.asked.append((verb, arguments["name"]))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return status(kept=answer and answer(arguments["id"]), remembers=self._remembers)


def look(*answers, **options):
    now = [0.0]
    control = Control(*answers, **options)
    return listed(control, "words", clock=lambda: now[0], pause=lambda s: now.__setitem__(0, now[0] + s)), control


def test_a_listing_is_awaited_and_anothers_is_none():
    found, control = look(None, lambda _: Listing("another"), lambda request: Listing(request, KEPT, [KEPT]))
    assert (found.committed, found.savepoints) == (KEPT, [KEPT])
    assert control.asked == [("snapshots", "words")] * 3


def test_a_store_that_cannot_be_read_is_said():
    with pytest.raises(StateError, match="words-1: no such bucket"):
        look(lambda request: Listing(request, error="no such bucket"))


def test_a_listing_has_a_deadline():
    with pytest.raises(TimedOut, match=f"has not read the store of snapshots within {LISTED_WITHIN:g} s"):
        look(None)


def test_a_topology_of_another_mode_has_none():
    assert look(None, remembers=False)[0].committed is None
