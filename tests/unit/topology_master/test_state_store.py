"""What a master writes of snapshots, on a real state manager and in a real folder."""

from __future__ import annotations

import queue
import threading
from asyncio import CancelledError
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from ardea.errors import UserError
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, Manifest, Part, encode_manifest, manifest_name, state_name
from ardea.snapshots.retention import Abandoned
from ardea.state import Create, Fenced, FileState, Term, paths, records
from ardea.state.records import ExecutionState, MasterLocation, RunState, TimelineRecord, TopologyRecord
from ardea.topology_master.state_store import StateStore
from ardea.topology_master.store import Found, WantedListing
from tests.process.waiting import eventually
from tests.unit.topology_master.test_addresses import Meeting

DEFINITION = Meeting().definition
RECORD = TimelineRecord(timeline=3, restore=5, committed=7, tasks={1: 2}, managers={1: 1}, final=True)


@pytest.fixture
def state(tmp_path):
    with FileState(tmp_path / "state") as state:
        yield state


@pytest.fixture
def store(state, tmp_path):
    return StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: Folder(tmp_path / "snapshots"))


def test_the_record_is_what_was_written_last(store):
    assert store.timeline() is None
    store.begin_timeline(TimelineRecord(timeline=1))
    store.begin_timeline(RECORD)
    assert store.timeline() == RECORD


def test_a_master_that_stood_still_does_not_say_that_it_listens(store, state):
    """Another one acts by then, and has said where it is: once only."""
    lease = state.lease(paths.master("words-1"), b"another's")
    Term.take(state, "words-1", "another")
    with pytest.raises(Fenced):
        store.listens(MasterLocation(host="h", port=1, term=1, pid=1))
    assert state.get(paths.master("words-1")).data == b"another's"
    lease.release()


def test_a_plan_and_the_timeline_between_are_one_write(store, state):
    store.plans(DEFINITION)
    running = ExecutionState(RunState.RUNNING)
    record = TopologyRecord(
        id="words-1", name="words", location="w.py", topology_class="W", config={}, submitted_by="u",
        submitted_at=datetime.now(UTC), submitted_from="h", ardea_version="0", digest="0", components={},
    )  # fmt: skip
    for path, content in ((paths.execution_state("words-1"), running), (paths.topology("words-1"), record)):
        state.transaction([Create(path, records.encode(content))])
    store.begin_timeline(TimelineRecord(timeline=1, tasks={1: 1}))
    wanted = replace(DEFINITION, epoch=2)
    former = Term.take(state, "words-1", "another")
    with pytest.raises(Fenced):
        store.switch(wanted, DEFINITION, running, RECORD)
    assert store.timeline().timeline == 1, "neither was written"
    now = StateStore(state, "words-1", former, lambda: Folder(state_name(0, 0, "")))
    now.switch(wanted, DEFINITION, running, RECORD)
    assert (now.timeline(), now.plans(DEFINITION)) == (RECORD, (wanted, DEFINITION))


def test_files_are_written_and_deleted_by_threads_of_their_own(store, tmp_path):
    said, folder = queue.SimpleQueue(), Folder(tmp_path / "snapshots")
    name = state_name(1, 5, "1-1.base")
    folder.write(name, [b"needed"])
    folder.write(state_name(1, 4, "1-1.base"), [b"of the snapshot before"])
    (tmp_path / "snapshots" / "9.9.manifest").mkdir()
    committed = Manifest(number=5, timeline=1, parts={1: Part("count", 0, (File(name, 0, 6),))})
    store.write_file(manifest_name(5), b"list", said.put)
    assert said.get(timeout=10.0) == ""
    store.write_file("9.9.manifest", b"list", said.put)
    assert said.get(timeout=10.0).startswith("9.9.manifest cannot be stored: ")
    store.retain(committed)
    eventually(lambda: sorted(folder.names()) == sorted([manifest_name(5), name]), 10.0, lambda: f"{folder.names()}")


class Slow(Folder):
    """Listing it takes until it is let go."""

    def __init__(self, path, error):
        super().__init__(path)
        self.listed, self.goes_on, self.error = [], threading.Semaphore(0), error

    def names(self):
        found = super().names()
        self.listed.append(found)
        assert self.goes_on.acquire(timeout=20.0)
        if len(self.listed) == 1:
            raise self.error("the connection is lost")
        return found


@pytest.mark.parametrize("error", [RuntimeError, CancelledError])
def test_one_thread_at_a_time_deletes_by_the_newest_list(state, tmp_path, error):
    """Each of many would list all of a store that cannot keep up, and find what the others delete gone."""
    folder = Slow(tmp_path / "snapshots", error)
    store = StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: folder)
    for number in range(1, 6):
        folder.write(manifest_name(number), [b"list"])
    store.retain(Manifest(number=1, timeline=1, parts={}))
    eventually(lambda: folder.listed, 10.0)
    for number in (2, 3, 4):
        store.retain(Manifest(number=number, timeline=1, parts={}))
    folder.goes_on.release(2)
    eventually(lambda: sorted(Folder.names(folder)) == [manifest_name(4), manifest_name(5)], 10.0)
    assert len(folder.listed) == 2, "those in between are left out, and an error ends one look only"
    store.retain(Manifest(number=5, timeline=1, parts={}))
    folder.goes_on.release()
    eventually(lambda: Folder.names(folder) == [manifest_name(5)], 10.0)


def test_a_machine_without_room_for_a_thread_deletes_when_it_has_some(store, tmp_path, monkeypatch):
    folder = Folder(tmp_path / "snapshots")
    for number in (1, 2):
        folder.write(manifest_name(number), [b"list"])
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        with pytest.raises(RuntimeError):
            store.retain(Manifest(number=1, timeline=1, parts={}))
    store.retain(Manifest(number=2, timeline=1, parts={}))
    eventually(lambda: folder.names() == [manifest_name(2)], 10.0)


def test_what_abandoned_snapshots_have_left_goes_without_a_list(state, tmp_path):
    folder = Folder(tmp_path / "snapshots")
    store = StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: folder)
    kept, left = state_name(1, 9, "1-1.delta"), state_name(1, 8, "1-1.base")
    for name in (kept, left):
        folder.write(name, [b"state"])
    store.tidy(Abandoned(since=(0, 0), timeline=1, stored={1: 9}, named=frozenset((kept,))))
    eventually(lambda: folder.names() == [kept], 10.0, lambda: f"{folder.names()}")


class Odd(Folder):
    """Its client raises what is no OSError."""

    def write(self, name, content):
        raise ValueError("no such region")


def test_whatever_a_foreign_store_raises_is_heard(state, tmp_path):
    """On a thread of its own nobody else would see it, and all would wait."""
    store = StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: Odd(tmp_path))
    said = queue.SimpleQueue()
    store.survey(None, said.put)
    assert repr(said.get(timeout=10.0)) == "ValueError('no such region')"
    store.write_file("0.1.manifest", b"", said.put)
    assert said.get(timeout=10.0) == "0.1.manifest cannot be stored: no such region"


def test_who_asks_what_is_kept_hears_that_the_store_cannot_be_opened(state, tmp_path):
    store = StateStore(state, "words-1", Term.take(state, "words-1", "me"), Mock(side_effect=OSError("no network")))
    said = queue.SimpleQueue()
    store.listing(WantedListing("r", "words-1", "words", str(tmp_path), lambda: 1), said.put)
    assert said.get(timeout=10.0).error == "the store of snapshots cannot be read: no network"


def test_a_survey_tells_of_the_newest_list_or_of_none(store):
    said = queue.SimpleQueue()
    store.survey(None, said.put)
    assert said.get(timeout=10.0) == Found(None)


class Full(Folder):
    def write(self, name, content):
        raise OSError("no space left on device")


def test_a_store_is_tried_only_where_nothing_is_found_in_it(state, tmp_path):
    """What is there is good to go on from, though nothing more can be written at present."""
    store = StateStore(state, "words-1", Term.take(state, "words-1", "me"), lambda: Full(tmp_path / "snapshots"))
    said = queue.SimpleQueue()
    store.survey(None, said.put)
    with pytest.raises(UserError, match="a file could not be written: no space left on device"):
        raise said.get(timeout=10.0)
    manifest = Manifest(number=5, timeline=1, parts={})
    Folder(tmp_path / "snapshots").write(manifest_name(5), [encode_manifest(manifest)])
    store.survey(None, said.put)
    assert said.get(timeout=10.0) == Found(manifest)
