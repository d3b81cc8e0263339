"""What a topology can begin from, and what is said where it cannot: all before anything is started."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from xxhash import xxh3_64_intdigest

from ardea import Bolt, Grouping, KeyedState, ListState, Spout, TaskState, Timers, Topology
from ardea.errors import Conflict, NotFound, StateError, UserError
from ardea.scheduler.beginning import Beginning
from ardea.scheduler.home import Home
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, Manifest, Part, manifest_name
from ardea.snapshots.place import savepoints_at
from ardea.snapshots.savepoint import DESCRIPTION, NUMBER, Savepoint, save
from ardea.snapshots.state_file import HEAD, Kind, Piece, encode_piece
from ardea.state import FileState, paths, records
from ardea.state.records import TimelineRecord, TopologyRecord
from ardea.state.topologies import register
from ardea.testing.memory_store import Held
from tests.unit.topology_master.test_addresses import Meeting

DEFINITION = Meeting().definition
ONCE = {"topology.reliability.mode": "EFFECTIVELY_ONCE"}


class Place(msgspec.Struct):
    at: int = 0


class Words(Spout):
    outputs = ("word",)
    position = TaskState(default=0)
    place = TaskState(default=Place, type=Place)

    def next_tuple(self):
        pass


class Count(Bolt):
    counts = KeyedState(default=0)
    late = ListState()

    def process(self, tup):
        pass


class More(Count):
    """A new version, with another state."""

    seen = KeyedState(default=0)


class Timed(Count):
    timers = Timers()

    def on_timer(self, name, key, at):
        pass


class Fewer(Bolt):
    late = ListState()

    def process(self, tup):
        pass


class Other(Bolt):
    counts = ListState()
    late = TaskState(default=0)

    def process(self, tup):
        pass


def plan(count=Count, words=2, counters=2, name="count", **config):
    class Counted(Topology):
        words_ = Words.spec(name="words", par=words)
        count_ = count.spec(name=name, par=counters, inputs={words_: Grouping.fields("word")})

    return Counted.plan({**ONCE, **config})


def state(*pieces):
    return b"".join((HEAD, *(encode_piece(Piece(*piece)) for piece in pieces)))


def position(value, at=0):
    one = range(0)
    return state(("position", Kind.ONE, one, [(value,)]), ("place", Kind.ONE, one, [({"at": at},)]))


@pytest.fixture
def folder(tmp_path):
    """Of two spouts, of which the second has not moved, and two counters."""
    counts = state(("counts", Kind.PUT, range(720), [("w1", 3)]), ("late", Kind.ITEMS, range(0), [("w2",)]))
    return written(
        tmp_path, {("words", 0): position(7), ("words", 1): position(0), ("count", 0): counts, ("count", 1): counts}
    )


def written(tmp_path, contents, ending="base"):
    files, parts = {}, {}
    for task, ((component, index), content) in enumerate(contents.items(), 1):
        name = f"t1/1.5/{task}-1.{ending}"
        files[name] = content
        parts[task] = Part(component, index, (File(name, xxh3_64_intdigest(content), len(content)),))
    one = Savepoint(
        request="r", topology="Counted-1", ardea="0", groups=720, number=1 << 32 | 5, timeline=1,
        manifest=Manifest(number=1 << 32 | 5, timeline=1, parts=parts), at=1e9,
    )  # fmt: skip
    place = tmp_path / "savepoint"
    save(Held(files), Folder(place), one, anew=False, wanted=lambda: True)
    return str(place)


def refused(folder, kind=UserError, *, drop_state=False, **options):
    with pytest.raises(kind) as caught:
        Beginning.of(folder, plan(**options), drop_state=drop_state)
    said = caught.value
    assert type(said) is kind
    assert said.message.endswith("nothing was started")
    return said.message, said.hint or ""


@pytest.mark.parametrize("options", [{}, {"counters": 5}, {"counters": 1}, {"words": 1}, {"count": More}, {"words": 4}])
def test_it_begins_with_other_parallelism_and_new_states(folder, options, tmp_path):
    one = Beginning.of(folder, plan(**options), drop_state=False)
    assert one.says == (
        f"begins from the savepoint {folder}: snapshot 1.5 of Counted-1, taken at 2001-09-09 01:46:40 UTC, "
        f"{one.savepoint.manifest.bytes:,} bytes in 4 files"
    )
    assert one.record == TimelineRecord(timeline=0, restore=NUMBER, committed=NUMBER)
    store = Folder(tmp_path / "store")
    one.copy(store)
    assert sorted(store.names()) == sorted([manifest_name(NUMBER), *one.savepoint.manifest.names])


def test_a_state_that_is_gone_is_dropped_only_if_asked(folder):
    message, hint = refused(folder, count=Fewer)
    assert message == f"{folder}: it has the state count.counts, which Counted does not have; nothing was started"
    assert hint.startswith("--drop-state begins without what that holds")
    assert Beginning.of(folder, plan(count=Fewer), drop_state=True).savepoint.components == {"count": 2, "words": 2}


def test_a_component_that_is_gone_is_dropped_with_its_files(folder, tmp_path):
    message, _ = refused(folder, name="tally")
    assert message == f"{folder}: it has the component count, which Counted does not have; nothing was started"
    one = Beginning.of(folder, plan(name="tally"), drop_state=True)
    assert one.savepoint.components == {"words": 2}
    one.copy(Folder(tmp_path / "store"))
    assert len(Folder(tmp_path / "store").names()) == 3


def test_timers_are_taken_over(tmp_path):
    due = state(("timers", Kind.PUT, range(720), [("w1", 3)]), ("timers", Kind.GONE, range(720), [("w2",)]))
    folder = written(tmp_path, {("count", 0): due})
    assert Beginning.of(folder, plan(count=Timed), drop_state=False).savepoint.components == {"count": 1}


def test_another_kind_of_state_is_refused_whatever_is_dropped(folder):
    message, hint = refused(folder, count=Other, drop_state=True)
    assert "count.counts was a KeyedState and is a ListState" in message
    assert "count.late was a ListState and is a TaskState" in message
    assert hint == "give the new state another name"


@pytest.mark.parametrize("second", [position(3), position(0, at=1)])
def test_a_position_of_a_task_that_is_gone_is_refused(tmp_path, second):
    folder = written(tmp_path, {("words", 0): position(7), ("words", 1): second})
    message, hint = refused(folder, words=1)
    assert message.startswith(f"{folder}: words-1 would not be there, with a TaskState that no other task can have")
    assert "as many tasks of that component" in hint
    Beginning.of(folder, plan(words=3), drop_state=False)


def test_other_key_groups_are_refused(folder):
    message, hint = refused(folder, **{"topology.key.groups": 12})
    assert "its keys are divided among 720 groups, and Counted has topology.key.groups = 12" in message
    assert hint == "submit it with --set topology.key.groups=720"


def test_another_mode_is_refused(folder):
    message, hint = refused(folder, **{"topology.reliability.mode": "ATLEAST_ONCE"})
    assert message == "--from: Counted is in the mode ATLEAST_ONCE, which keeps no state; nothing was started"
    assert hint == "set topology.reliability.mode to EFFECTIVELY_ONCE"


def test_what_is_no_savepoint_or_not_whole_is_refused(folder, tmp_path):
    files = Folder.at(folder)
    assert "no savepoint lies there: it has no savepoint.json" in refused(str(tmp_path / "none"), NotFound)[0]
    name = next(name for name in files.names() if name.endswith(".base"))
    content = files.read(name)
    files.write(name, [content[:-1]])
    assert f"its file {name} is damaged" in refused(folder, StateError)[0]
    files.delete([name])
    assert f"its file {name} is missing" in refused(folder, StateError)[0]
    files.write(name, [content])
    one = Beginning.of(folder, plan(), drop_state=False)
    files.write(name, [content[:-1]])
    with pytest.raises(StateError, match="is damaged"):
        one.copy(Folder(tmp_path / "store"))
    files.write(DESCRIPTION, [files.read(DESCRIPTION)[:50]])
    assert "is cut or damaged" in refused(folder, StateError)[0]
    (tmp_path / "savepoint" / DESCRIPTION).unlink()
    assert "it was begun, and never finished" in refused(folder, NotFound)[0]


def test_rows_of_a_sink_are_copied_and_not_looked_into(tmp_path):
    folder = written(tmp_path, {("count", 0): b"anything", ("count", 1): b"else"}, ending="rows")
    one = Beginning.of(folder, plan(), drop_state=False)
    one.copy(Folder(tmp_path / "store"))
    assert sum(name.endswith(".rows") for name in Folder(tmp_path / "store").names()) == 2


def test_what_a_topology_remembered_goes_with_it_and_savepoints_stay(tmp_path):
    """Of one that has FAILED it stays, until its logs go."""
    home = Home(tmp_path / "home")
    places = {}
    with home.open_state() as state:
        for name, snapshots in (("killed-1", True), ("failed-1", False)):
            definition = msgspec.structs.replace(DEFINITION, topology=name, state=home.state_url)
            definition.write(home.make_folder(name) / "definition")
            state.create(paths.timeline(name), records.encode(TimelineRecord()))
            home.snapshots(name).write("t1/1.1/1-1.base", [b"state"])
            Folder.at(savepoints_at(None, home.state_url, name, "one")).write(DESCRIPTION, [b"kept"])
            home.forget(state, name, snapshots=snapshots)
            assert not state.exists(paths.timeline(name))
            places[name] = home.snapshots(name)
        assert (places["killed-1"].names(), places["failed-1"].names()) == ([], ["t1/1.1/1-1.base"])
        home.prune(keep=0)
        assert places["failed-1"].names() == []
    kept = Folder.at(savepoints_at(None, home.state_url)).names()
    assert sorted(kept) == [f"failed-1/one/{DESCRIPTION}", f"killed-1/one/{DESCRIPTION}"]


def test_a_topology_is_registered_together_with_what_it_begins_from(tmp_path):
    with FileState(tmp_path) as state:
        record = TopologyRecord(
            id="words-1", name="words", location="w.py", topology_class="W", config={}, submitted_by="u",
            submitted_at=datetime.now(UTC), submitted_from="h", ardea_version="0", digest="0", components={},
        )  # fmt: skip
        begins = TimelineRecord(restore=NUMBER, committed=NUMBER)
        register(state, record, timeline=begins)
        path = paths.timeline("words-1")
        assert records.decode(state.get(path).data, TimelineRecord, path) == begins
        with state.lease(paths.scheduler("words-1"), b""), pytest.raises(Conflict):
            register(state, msgspec.structs.replace(record, id="words-2"), timeline=begins)
        assert not state.exists(paths.timeline("words-2")), "nothing of what was refused is left"
