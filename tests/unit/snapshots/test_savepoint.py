"""A savepoint in a folder: what is copied, what is never overwritten, and what is not whole."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from ardea.errors import Conflict, NotFound, StateError
from ardea.snapshots import savepoint
from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, Manifest, Part
from ardea.snapshots.pieces import HEAD, Kind, Stored, pack
from ardea.snapshots.place import place_at, savepoints_at
from ardea.snapshots.savepoint import DESCRIPTION, NUMBER, Savepoint, contents, encode, read, save
from ardea.testing.memory_store import Held


def state(*kinds):
    return b"".join((HEAD, *(pack(Stored(kind.name.lower(), kind, 0, 720, b"rows")) for kind in kinds)))


CONTENT = {
    "t3/1.5/1-1.base": state(Kind.PUT, Kind.ONE),
    "t3/1.6/1-1.delta": state(Kind.GONE, Kind.ITEMS),
    "t3/1.6/2-1.rows": b"rows of a sink",
}


def files(*names):
    return tuple(File(name, xxh3_64_intdigest(CONTENT[name]), len(CONTENT[name])) for name in names)


MANIFEST = Manifest(
    number=1 << 32 | 6,
    timeline=3,
    parts={1: Part("count", 0, files(*list(CONTENT)[:2])), 2: Part("sink", 0, files("t3/1.6/2-1.rows"))},
)
SAVEPOINT = Savepoint(
    request="r",
    topology="words-1",
    ardea="0",
    groups=720,
    number=MANIFEST.number,
    timeline=3,
    manifest=MANIFEST,
    at=7.0,
)


def saved(target, one=SAVEPOINT, source=CONTENT, *, anew=False, wanted=lambda: True):
    return save(Held(dict(source)), target, one, anew=anew, wanted=wanted)


def copied(target):
    """As read from there."""
    return [b"".join(content) for *_, content in contents(target, read(target).manifest)]


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "savepoint")


def test_all_files_are_there_under_the_lowest_number(folder):
    one = saved(folder)
    assert read(folder) == one
    assert sorted(folder.names()) == [
        DESCRIPTION, "t0/0.1/1.6-t3-1.5-1-1.base", "t0/0.1/1.6-t3-1.6-1-1.delta", "t0/0.1/1.6-t3-1.6-2-1.rows",
    ]  # fmt: skip
    assert (one.manifest.number, one.manifest.timeline, one.number, one.timeline) == (NUMBER, 0, MANIFEST.number, 3)
    assert copied(folder) == list(CONTENT.values())
    kinds = {"put": "KeyedState", "one": "TaskState", "gone": "KeyedState", "items": "ListState"}
    assert one.states == {"count": kinds}, "the rows of a sink are no state"


def test_nothing_is_overwritten(folder):
    one = saved(folder)
    assert saved(folder, source={}) == one, "the same request: it is there"
    other = Savepoint(request="s", topology="w", ardea="0", groups=1, number=1, timeline=1, manifest=MANIFEST)
    with pytest.raises(Conflict, match="a savepoint lies there already, which is never overwritten"):
        saved(folder, other)
    assert read(folder) == one


def test_other_files_stay_alone(folder):
    folder.write("mine.txt", [b"text"])
    with pytest.raises(Conflict, match="other files lie there"):
        saved(folder)
    assert folder.names() == ["mine.txt"]


def test_the_same_request_goes_on_where_a_master_died(folder):
    folder.write("t0/0.1/1.5-t3-1.5-1-1.base", [b"ba"])
    with pytest.raises(NotFound, match="it was begun, and never finished"):
        read(folder)
    saved(folder)
    assert len(copied(folder)) == 3


def test_the_same_request_goes_on_where_a_master_died_while_it_wrote_the_description(folder):
    def content():
        yield b"{"
        raise OSError("it dies")

    with patch.object(Path, "unlink"), pytest.raises(OSError, match="it dies"):  # nobody deletes what it has begun
        folder.write(DESCRIPTION, content())
    (begun,) = folder.names()
    assert begun != DESCRIPTION
    assert saved(folder) == read(folder)


def test_with_an_end_what_the_former_master_saved_is_replaced(folder):
    saved(folder)
    source = {**CONTENT, "t4/2.1/1-1.base": LATER}
    later = Manifest(number=2, timeline=4, parts={1: Part("count", 0, (File("t4/2.1/1-1.base", *_sum(LATER)),))})
    one = Savepoint(request="r", topology="words-1", ardea="0", groups=720, number=2, timeline=4, manifest=later)
    assert saved(folder, one, source, anew=True) == read(folder)
    assert (read(folder).number, len(read(folder).manifest.names)) == (2, 1)


LATER = state(Kind.PUT)


def _sum(content):
    return xxh3_64_intdigest(content), len(content)


@pytest.mark.parametrize("at_once", [7, savepoint.AT_ONCE])
@pytest.mark.parametrize("name", list(CONTENT))
def test_what_is_damaged_or_missing_is_not_copied(folder, monkeypatch, name, at_once):
    monkeypatch.setattr(savepoint, "AT_ONCE", at_once)
    gone = {each: CONTENT[each] for each in CONTENT if each != name}
    for other in (b"other", b"", CONTENT[name][:-1], CONTENT[name] + b"x", CONTENT[name][:-1] + b"x", None):
        source = gone if other is None else {**CONTENT, name: other}
        with pytest.raises(StateError, match=f"its file {name} is (missing|damaged)"):
            saved(folder, source=source)
        assert folder.names() == []


class Read(bytes):
    """What one read has given, as long as somebody has it."""

    held = most = 0

    def __new__(cls, content):
        cls.held += 1
        cls.most = max(cls.most, cls.held)
        return super().__new__(cls, content)

    def __del__(self):
        Read.held -= 1


class Counting(Held):
    """A store that counts how much of it is held, and gives no file as a whole."""

    def __init__(self, files):
        super().__init__({})
        self._whole = Held(files)

    def parts(self, name, most):
        yield from map(Read, self._whole.parts(name, most))


def test_of_a_file_larger_than_memory_two_reads_are_held_and_no_piece_as_a_whole(folder, monkeypatch):
    monkeypatch.setattr(savepoint, "AT_ONCE", 64)
    monkeypatch.setattr(Read, "most", 0)
    large = HEAD + pack(Stored("a", Kind.ITEMS, 0, 0, bytes(50_000))) + pack(Stored("b", Kind.ONE, 0, 0, bytes(20_000)))
    manifest = Manifest(number=2, timeline=4, parts={1: Part("count", 0, (File("t4/2.1/1-1.base", *_sum(large)),))})
    one = save(
        Counting({"t4/2.1/1-1.base": large}),
        folder,
        replace(SAVEPOINT, manifest=manifest),
        anew=False,
        wanted=lambda: True,
    )
    assert copied(folder) == [large]
    assert one.states == {"count": {"a": "ListState", "b": "TaskState"}}
    assert Read.held == 0 < Read.most <= 3, "the third is being read"


@pytest.mark.parametrize("written", [2, 3, 4])
def test_nobody_waits_any_more(folder, written):
    """Nor for the description, once all files are copied, nor when that is there, too."""
    looks = iter([True] * written + [False])
    with pytest.raises(StateError, match="it took too long to copy"):
        saved(folder, wanted=lambda: next(looks))
    assert folder.names() == []


@pytest.mark.parametrize("refused", [True, False])
def test_one_that_was_given_up_and_wakes_leaves_the_next_one_in_the_same_folder_alone(folder, refused):
    """It is a thread that sits in a slow write, or that of a former master on another machine, which still waits."""
    later = replace(SAVEPOINT, request="s", number=SAVEPOINT.number + 1)
    looks = []

    def wanted():
        if not looks:
            saved(folder, later)
        looks.append(1)
        return not refused or len(looks) < 3

    why = "it took too long to copy" if refused else "another savepoint was finished there meanwhile"
    with pytest.raises((StateError, Conflict), match=why):
        saved(folder, wanted=wanted)
    assert read(folder).request == "s"
    assert copied(folder) == list(CONTENT.values())
    assert len(folder.names()) == 4


def test_one_that_is_refused_as_it_is_finished_leaves_the_description_of_the_next_one_alone(folder):
    looks = []

    def wanted():
        looks.append(1)
        if len(looks) == 5:  # after the description
            folder.write(DESCRIPTION, [encode(replace(read(folder), request="s"))])
        return len(looks) < 5

    with pytest.raises(StateError, match="it took too long to copy"):
        saved(folder, wanted=wanted)
    assert read(folder).request == "s"
    assert folder.names() == [DESCRIPTION]


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -20])
def test_a_description_that_was_cut_is_no_savepoint(folder, cut):
    saved(folder)
    content = folder.read(DESCRIPTION)
    folder.write(DESCRIPTION, [content[:cut] if cut != -1 else content[:-2]])
    with pytest.raises(StateError, match="is cut or damaged"):
        read(folder)


def test_another_format_is_named(folder):
    folder.write(DESCRIPTION, [encode(replace(SAVEPOINT, format=9))])
    with pytest.raises(StateError, match="is of format 9, and this Ardea reads format 1"):
        read(folder)
    folder.write(DESCRIPTION, [encode(replace(SAVEPOINT, manifest=replace(MANIFEST, format=99)))])
    with pytest.raises(StateError, match="is of format 99"):
        read(folder)
    folder.write(DESCRIPTION, [encode(SAVEPOINT)])
    with pytest.raises(StateError, match="is of another one"):
        read(folder)


def test_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("text")
    for place in (tmp_path / "none", tmp_path / "file"):
        with pytest.raises(NotFound, match="no savepoint lies there"):
            read(Folder(place))


@pytest.mark.parametrize(
    ("storage", "address"),
    [
        (None, "/state/savepoints/words-1/now"),
        ("/store/", "/store/savepoints/words-1/now"),
        ("s3://bucket/folder?region=x", "s3://bucket/folder/savepoints/words-1/now?region=x"),
    ],
)
def test_where_they_lie(storage, address):
    assert savepoints_at(storage, "/state", "words-1", "now") == address


def test_in_a_file_system_of_pyarrow(tmp_path):
    pytest.importorskip("pyarrow")
    from ardea.snapshots.objects import Objects

    objects = Objects(f"file://{tmp_path}/savepoint")
    one = saved(objects)
    assert read(place_at(str(tmp_path / "savepoint"))) == one
    assert objects.written(DESCRIPTION) > 0
    objects.remove()
    assert objects.names() == []
