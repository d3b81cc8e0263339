"""Both backends pass what third-party ones are tried with; what is wrong with one is found, and said."""

from __future__ import annotations

import resource

import pytest

from ardea.backends import rocksdb
from ardea.backends.bases import AgingBase, MemoryBackend, PlainBase
from ardea.backends.chosen import Scratch, backend_class
from ardea.backends.contract import ScratchError
from ardea.backends.rocksdb import RocksBackend
from ardea.errors import UserError
from ardea.protocol.keys import encode_key
from ardea.snapshots.key_groups import Keys
from ardea.testing import check_state_backend
from ardea.testing.backends import EQUAL
from tests.sizes import size
from tests.unit.protocol.test_vectors import NAMES, VECTORS

ALL = Keys("count", 0, 1, 720, 1)


@pytest.mark.parametrize("backend", [MemoryBackend, RocksBackend])
@pytest.mark.parametrize("seed", range(size(1, 50, 5)))
def test_it_passes(backend, seed):
    check_state_backend(backend, steps=size(100, 1000, 300), seed=seed)


def test_all_keys_of_the_page_are_tried():
    tried = {encode_key((form,)) for forms in EQUAL for form in forms}
    vectors = [eval(source.removeprefix("*"), NAMES) for source, *_ in VECTORS]
    assert {encode_key((key,)) for key in vectors} <= tried


def test_keys_of_one_list_have_one_encoding_and_of_two_two():
    encodings = [{encode_key((form,)) for form in forms} for forms in EQUAL]
    assert {len(each) for each in encodings} == {1}
    assert len(set.union(*encodings)) == len(EQUAL)


def _typed(key):
    """Tells numbers of two types apart."""
    return str(key) if type(key) is float else key


def flawed(**changes):
    """A backend in memory whose bases without a time to live have other methods."""
    base = type("FlawedBase", (PlainBase,), changes)

    class Flawed(MemoryBackend):
        def base(self, state, keys, ttl, now):
            return base(keys) if ttl is None else super().base(state, keys, ttl, now)

    return Flawed


class Forgetful(MemoryBackend):
    def base(self, state, keys, ttl, now):
        return super().base(state, keys, None if ttl is None else ttl / 2, now)


class Immortal(MemoryBackend):
    def base(self, state, keys, ttl, now):
        return PlainBase(keys)


class Hasty(MemoryBackend):
    def base(self, state, keys, ttl, now):
        class Base(AgingBase):
            def expired(self, written):
                return written + ttl <= now()

        return PlainBase(keys) if ttl is None else Base(keys, ttl, now)


class Shared(MemoryBackend):
    one = PlainBase(Keys("checked", 0, 1, 24, 1))

    def __init__(self, folder):
        self.one.clear()

    def base(self, state, keys, ttl, now):
        return self.one if ttl is None else AgingBase(keys, ttl, now)


@pytest.mark.parametrize(
    ("backend", "says"),
    [
        (flawed(add=lambda self, rows, _: self.update((_typed(key), value) for key, value in rows)), "are one key"),
        (flawed(get=lambda self, key, default=None: dict.get(self, key)), "does not give the default"),
        (flawed(__len__=lambda self: dict.__len__(self) + 1), "len\\(\\) is"),
        (flawed(remove=lambda self, keys: None), "not {'key': 0, 0: 0}|not {2: 2}"),
        (flawed(chunks=lambda self: reversed(list(PlainBase.chunks(self)))), "not in the order of groups"),
        (flawed(chunks=lambda self: list(PlainBase.chunks(self))[1:]), "each key once"),
        (Forgetful, "is gone .* s after it was written"),
        (Immortal, r"chunks\(\) says that .* was written"),
        (Hasty, "what was written at no time is gone"),
        (Shared, "see one another's keys"),
    ],
)
def test_what_is_wrong_is_found(backend, says):
    with pytest.raises(AssertionError, match=says):
        check_state_backend(backend, steps=100)


def test_a_backend_is_named_by_its_class():
    name = f"{__name__}:Immortal"
    assert (backend_class(name), backend_class("memory")) == (Immortal, MemoryBackend)
    for wrong in ("rocks", f"{__name__}:Nobody", "no.such:Backend", ""):
        with pytest.raises(UserError, match=r"topology.stateful.backend = .* cannot be found"):
            backend_class(wrong)
    with pytest.raises(UserError, match="is no class"):
        backend_class(f"{__name__}:flawed")


def test_without_the_extra_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "rocksdict", None)
    with pytest.raises(UserError, match="needs rocksdict, which is not installed") as caught:
        RocksBackend(tmp_path)
    assert caught.value.hint == "pip install 'ardea[rocksdb]', and add the extra to the image"


def test_a_folder_is_made_when_it_is_needed_and_nothing_is_left_in_it(tmp_path):
    place = tmp_path / "task-1.state"
    scratch = Scratch(RocksBackend, place)
    place.mkdir()
    (place / "left").touch()
    backend = scratch.open()
    assert not place.exists(), "what a former life has left is removed"
    base = backend.base("t", ALL, None, lambda: 0.0)
    assert (len(base), base.get("a"), place.exists()) == (0, None, False)
    base.add([("a", 1)], 0.0)
    assert [path.name for path in place.iterdir()] == ["1"]
    reading = base.chunks()
    backend.close()
    assert not place.exists()
    scratch.open().base("t", ALL, None, lambda: 0.0).add([("a", 2)], 0.0)
    reading.close()


def test_there_may_be_as_many_key_groups_as_somebody_likes(tmp_path):
    many = Keys("count", 0, 1, 1_000_000, 1)
    backend = RocksBackend(tmp_path / "1")
    base = backend.base("t", many, None, lambda: 0.0)
    base.add([(number, number) for number in range(10)], 0.0)
    assert {chunk.group for chunk in base.chunks()} == {many.group(number) for number in range(10)}
    assert base.get(9) == 9
    backend.close()


def test_what_a_disk_does_is_said_with_the_folder_and_what_to_do(tmp_path):
    (tmp_path / "file").touch()
    base = RocksBackend(tmp_path / "file" / "1").base("t", ALL, None, lambda: 0.0)
    with pytest.raises(
        ScratchError, match=r"rocksdb failed: .*file/1 could not be opened: .* look for room on that disk"
    ):
        base.add([("a", 1)], 0.0)


@pytest.mark.parametrize("ttl", [None, 80.0])
def test_a_block_that_cannot_be_read_is_an_error_and_not_the_end_of_the_keys(tmp_path, ttl):
    backend = RocksBackend(tmp_path / "1")
    base = backend.base("t", ALL, ttl, lambda: 110.0)
    base.add([(number, number) for number in range(3000)], 101.0)
    base.remove(range(1000))
    base.add([(number, -number) for number in range(2000, 3000)], 101.5)
    base.add([("another", 1)], 95.0)
    assert sum(len(chunk.rows) for chunk in base.chunks()) == len(base) == 2001
    backend.database.flush()
    (file,) = (tmp_path / "1").glob("*.sst")
    with file.open("r+b") as content:
        content.seek(file.stat().st_size // 2)
        content.write(bytes(64))
    for read in (base.chunks, base.__iter__):
        with pytest.raises(ScratchError, match=r"could not be read: [\d,]+ of 2,00[01] keys were found\. Its content"):
            list(read())
    backend.close()


def fill(base):
    for number in range(1000):
        base.add([((number, place), "text" * 50) for place in range(100)], 0.0)


def test_a_full_disk_is_heard_and_another_database_is_made(monkeypatch, tmp_path):
    """A limit of the size of files is one: what RocksDB writes by itself fails, and the next batch says so."""
    monkeypatch.setattr(rocksdb, "_WRITE_BUFFER", 1 << 16)
    scratch = Scratch(RocksBackend, tmp_path / "task-1.state")
    backend = scratch.open()
    base = backend.base("t", ALL, None, lambda: 0.0)
    base.add([("a", 1)], 0.0)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, most[1]))
    try:
        with pytest.raises(ScratchError, match=r"could not be written: IO error: .* Its content is made anew"):
            fill(base)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
    backend.close()
    anew = scratch.open()
    base = anew.base("t", ALL, None, lambda: 0.0)
    base.add([("a", 2)], 0.0)
    assert (len(base), base.get("a")) == (1, 2)
    anew.close()
