"""What a topology can begin from, and what is said where it cannot: all before anything is started."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from xxhash import xxh3_64_intdigest

from ardea import Bolt, Grouping, KeyedState, ListState, Spout, TaskState, Timers, Topology
from ardea.errors import NotFound, StateError, UserError
from ardea.plan.definition import Begins
from ardea.plan.shape import shape_of
from ardea.scheduler.home import Home
from ardea.scheduler.submission import Submission
from ardea.snapshots.beginning import Beginning
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, Manifest, Part, manifest_name
from ardea.snapshots.pieces import HEAD, Kind
from ardea.snapshots.place import savepoints_at
from ardea.snapshots.savepoint import DESCRIPTION, NUMBER, Savepoint, read, save
from ardea.snapshots.state_file import Piece, encode_piece
from ardea.state import paths, records
from ardea.state.records import TimelineRecord
from ardea.testing.memory_store import Held
from tests.unit.topology_master.test_addresses import Meeting

DEFINITION = Meeting().definition
ONCE = {"topology.reliability.mode": "EFFECTIVELY_ONCE"}


class Words(Spout):
    outputs = ("word",)
    position = TaskState(default=0)

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


def position(value):
    return state(("position", Kind.ONE, range(0), [(value,)]))


@pytest.fixture
def folder(tmp_path):
    """Of two spouts, of which the second has not moved, and two counters."""
    counts = state(("counts", Kind.PUT, range(720), [("w1", 3)]), ("late", Kind.ITEMS, range(0), [("w2",)]))
    return written(
        tmp_path,
        {("words", 0): position(7), ("words", 1): position(0), ("count", 0): counts, ("count", 1): counts},
        bound={("words", 0)},
    )


def written(tmp_path, contents, ending="base", bound=()):
    """A savepoint, whose tasks say that they are ``bound``."""
    files, parts = {}, {}
    for task, ((component, index), content) in enumerate(contents.items(), 1):
        name = f"t1/1.5/{task}-1.{ending}"
        files[name] = content
        file = File(name, xxh3_64_intdigest(content), len(content))
        parts[task] = Part(component, index, (file,), (component, index) in bound)
    one = Savepoint(
        request="r", topology="Counted-1", ardea="0", groups=720, number=1 << 32 | 5, timeline=1,
        manifest=Manifest(number=1 << 32 | 5, timeline=1, parts=parts), at=1e9,
    )  # fmt: skip
    place = tmp_path / "savepoint"
    save(Held(files), Folder(place), one, anew=False, wanted=lambda: True)
    return str(place)


def beginning(folder, *, drop_state=False, groups=720, **options):
    """As a master has it, which knows no classes."""
    return Beginning(Begins(folder, drop_state), shape_of(plan(**options)).plan(), groups)


def submission(**options):
    made = plan(**options)
    return Submission(made, None, msgspec.structs.replace(DEFINITION, shape=shape_of(made)), "Counted")


def refused(folder, kind=UserError, *, drop_state=False, **options):
    """What both say: the master, and ``submit`` where it reaches the folder."""
    with pytest.raises(kind) as caught:
        beginning(folder, drop_state=drop_state, **options).copy(Held({}))
    said = caught.value
    assert type(said) is kind
    with pytest.raises(kind) as caught:
        submission(**options).begun_from(Begins(folder, drop_state), seen=True)
    assert caught.value.message == f"{said.message}; nothing was started"
    return said.message.removeprefix(f"the savepoint {folder}: "), said.hint or ""


@pytest.mark.parametrize("options", [{}, {"counters": 5}, {"counters": 1}, {"words": 1}, {"count": More}, {"words": 4}])
def test_it_begins_with_other_parallelism_and_new_states(folder, options):
    one, store = beginning(folder, **options), {}
    assert one.copy(Held(store)).number == NUMBER
    names = read(Folder(Path(folder))).manifest.names
    assert sorted(store) == sorted([manifest_name(NUMBER), *names])
    assert one.copied == one.size == sum(len(store[name]) for name in names)
    made = submission(**options).begun_from(Begins(folder), seen=True)
    assert made.definition.begins == Begins(folder)
    assert made.begins_from == (
        f"begins from the savepoint {folder}: snapshot 1.5 of Counted-1, taken at 2001-09-09 01:46:40 UTC, "
        f"{one.size:,} bytes in 4 files"
    )


def test_a_place_that_only_masters_reach_is_not_looked_at():
    made = submission().begun_from(Begins("s3://state/one"), seen=False)
    assert made.definition.begins == Begins("s3://state/one")
    assert made.begins_from == "begins from the savepoint s3://state/one, which its master reads"


def test_a_folder_is_the_same_one_for_the_master(folder, monkeypatch):
    monkeypatch.chdir(Path(folder).parent)
    for place in ("savepoint", "file://savepoint"):
        assert submission().begun_from(Begins(place), seen=True).definition.begins == Begins(folder)


def test_a_state_that_is_gone_is_dropped_only_if_asked(folder):
    message, hint = refused(folder, count=Fewer)
    assert message == "it has the state count.counts, which Counted does not have"
    assert hint.startswith("--drop-state begins without what that holds")
    assert len(beginning(folder, count=Fewer, drop_state=True).copy(Held({})).parts) == 4


def test_a_component_that_is_gone_is_dropped_with_its_files(folder):
    message, _ = refused(folder, name="tally")
    assert message == "it has the component count, which Counted does not have"
    store = {}
    assert len(beginning(folder, name="tally", drop_state=True).copy(Held(store)).parts) == 2
    assert len(store) == 3


def test_timers_are_taken_over(tmp_path):
    due = state(("timers", Kind.PUT, range(720), [("w1", 3)]), ("timers", Kind.GONE, range(720), [("w2",)]))
    folder = written(tmp_path, {("count", 0): due})
    assert beginning(folder, count=Timed).look().components == {"count": 1}


def test_another_kind_of_state_is_refused_whatever_is_dropped(folder):
    message, hint = refused(folder, count=Other, drop_state=True)
    assert "count.counts was a KeyedState and is a ListState" in message
    assert "count.late was a ListState and is a TaskState" in message
    assert hint == "give the new state another name"


def test_a_position_of_a_task_that_is_gone_is_refused(tmp_path):
    content = {("words", 0): position(7), ("words", 1): position(3)}
    folder = written(tmp_path, content, bound={("words", 0), ("words", 1)})
    message, hint = refused(folder, words=1)
    assert message.startswith("words-1 would not be there, with a TaskState that no other task can have")
    assert "as many tasks of that component" in hint
    beginning(folder, words=3).look()


def test_other_key_groups_are_refused(folder):
    with pytest.raises(UserError) as caught:
        beginning(folder, groups=12).look()
    assert caught.value.message == (
        f"the savepoint {folder}: its keys are divided among 720 groups, and Counted has topology.key.groups = 12"
    )
    assert caught.value.hint == "submit it with --set topology.key.groups=720"


@pytest.mark.parametrize("seen", [False, True])
def test_another_mode_is_refused(folder, seen):
    with pytest.raises(UserError) as caught:
        submission(**{"topology.reliability.mode": "ATLEAST_ONCE"}).begun_from(Begins(folder), seen=seen)
    assert caught.value.message == (
        "--from: Counted is in the mode ATLEAST_ONCE, which keeps no state; nothing was started"
    )
    assert caught.value.hint == "set topology.reliability.mode to EFFECTIVELY_ONCE"


def test_a_file_that_is_missing_or_damaged_is_found_by_the_master(folder):
    files = Folder.at(folder)
    name = next(name for name in files.names() if name.endswith(".base"))
    content = files.read(name)
    files.write(name, [content[:-1]])
    store = {}
    with pytest.raises(StateError, match=rf"^the savepoint {folder}: its file {name} is damaged"):
        beginning(folder).copy(Held(store))
    assert manifest_name(NUMBER) not in store
    files.delete([name])
    with pytest.raises(StateError, match=f"its file {name} is missing"):
        beginning(folder).copy(Held(store))
    files.write(name, [content])
    beginning(folder).copy(Held(store))
    assert manifest_name(NUMBER) in store


def test_what_is_no_savepoint_is_refused(folder, tmp_path):
    files = Folder.at(folder)
    assert "no savepoint lies there: it has no savepoint.json" in refused(str(tmp_path / "none"), NotFound)[0]
    files.write(DESCRIPTION, [files.read(DESCRIPTION)[:50]])
    assert "is cut or damaged" in refused(folder, StateError)[0]
    (tmp_path / "savepoint" / DESCRIPTION).unlink()
    assert "it was begun, and never finished" in refused(folder, NotFound)[0]


def test_one_that_is_given_up_leaves_no_list(folder):
    one, store = beginning(folder), {}
    one.given_up = True
    with pytest.raises(StateError, match="it took too long to copy"):
        one.copy(Held(store))
    assert store == {}


def test_rows_of_a_sink_are_copied_and_not_looked_into(tmp_path):
    folder = written(tmp_path, {("count", 0): b"anything", ("count", 1): b"else"}, ending="rows")
    store = {}
    beginning(folder).copy(Held(store))
    assert sum(name.endswith(".rows") for name in store) == 2


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
