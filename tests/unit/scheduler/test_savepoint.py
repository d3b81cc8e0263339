"""How the verb asks a master for a savepoint: until it is done, or refused, or nobody says how it went."""

from __future__ import annotations

import pytest

from ardea.errors import ArdeaError, ClusterError, NotFound, TimedOut, Unreachable, Unrecognized
from ardea.scheduler.control import Status
from ardea.scheduler.savepoint import MARGIN, Saving, Wanted
from ardea.scheduler.update import Refused
from ardea.snapshots.folder import Folder
from ardea.snapshots.kept import savepoints_in
from ardea.snapshots.manifest import Manifest
from ardea.snapshots.place import savepoints_at
from ardea.snapshots.savepoint import DESCRIPTION, NUMBER, Savepoint, SavepointProgress, encode
from ardea.state import paths

STORED = Savepoint(
    request="r", topology="words-1", ardea="0", groups=720, number=5, timeline=1, at=1.0,
    manifest=Manifest(number=NUMBER, timeline=0, parts={}),
)  # fmt: skip


class Control:
    """A master that answers with these, the last one again and again; an exception is raised."""

    def __init__(self, *answers):
        self.asked = []
        self._answers = list(answers)

    def ask(self, verb, *, patience, body, **arguments):
        self.asked.append((verb, arguments))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def says(step="", state="RUNNING", request="r", **more):
    progress = SavepointProgress(id=request, step=step, folder="/there", **more) if step else None
    return Status("words-1", state, "", 1, 1, [], [], 0, [], None, {}, {}, [], savepoint=progress)


def save(*answers, folder="/there", ends=False, why=str):
    """(progress, what was said, what was asked)."""
    now, said, control = [0.0], [], Control(*answers)

    def pause(seconds):
        now[0] += seconds

    wanted = Wanted("words-1", "r", folder, 30.0, ends)
    done = Saving(control, wanted, said.append, why, clock=lambda: now[0], pause=pause).save()
    return done, said, control.asked


def test_it_asks_until_it_is_done_whichever_master_answers():
    answers = says(), says("taking"), Unreachable("nobody"), says("resting", late=("a-0 rests not",)), says("copying")
    done, said, asked = save(*answers, says("done", number=5, bytes=7, files=2))
    assert (done.number, done.bytes, done.files) == (5, 7, 2)
    assert said == ["taking", "waiting for the topology master", "resting: a-0 rests not", "copying"]
    assert set(map(str, asked)) == {str(("savepoint", {"id": "r", "folder": "/there", "wait": "30.0"}))}
    _, _, asked = save(says("done"), ends=True)
    assert asked[0][1]["kill"] == "yes"


@pytest.mark.parametrize(
    ("ends", "hint"), [(False, "the topology goes on"), (True, "nothing was killed; the topology goes on")]
)
def test_what_is_refused_says_that_the_topology_goes_on(ends, hint):
    with pytest.raises(Refused, match="there is no savepoint of words-1: the store is full") as refusal:
        save(says("taking"), says("refused", reason="the store is full"), ends=ends)
    assert refusal.value.hint == hint
    with pytest.raises(Refused, match="in the mode ATLEAST_ONCE") as refusal:
        save(ArdeaError("the master of words-1 refused: in the mode ATLEAST_ONCE"), ends=ends)
    assert refusal.value.hint == hint


@pytest.mark.parametrize("error", [Unrecognized("cannot list pods: Unauthorized"), ClusterError("it is forbidden")])
def test_a_cluster_that_refuses_for_a_moment_is_no_master_that_does(error):
    done, said, _ = save(says("copying"), error, says("done", number=5), ends=True)
    assert done.number == 5
    assert said == ["copying", "waiting for the topology master"]
    with pytest.raises(TimedOut, match=f"how the savepoint went: {error.message}"):
        save(says("copying"), error)


def test_a_topology_that_is_gone_does_not_go_on(tmp_path):
    with pytest.raises(Refused, match="words-1 is gone") as refusal:
        save(says("copying"), NotFound("words-1 is gone"), ends=True, why=lambda: None)
    assert refusal.value.hint == "the savepoint is whole if /there/savepoint.json is there"
    with pytest.raises(Refused, match="its token cannot be read") as refusal:
        save(NotFound("its token cannot be read", hint="it belongs to another user"))
    assert refusal.value.hint == "it belongs to another user"
    Folder(tmp_path).write(DESCRIPTION, [encode(STORED)])
    done, *_ = save(says("copying"), NotFound("words-1 is gone"), folder=str(tmp_path), ends=True, why=lambda: None)
    assert (done.step, done.number) == ("done", 5)


def test_another_callers_savepoint_is_none_of_ours():
    done, *_ = save(says("done", request="s", number=1), says("done", number=5))
    assert done.number == 5


def test_a_topology_that_has_ended_has_none():
    with pytest.raises(Refused, match="words-1 is FAILED; there is no savepoint of it"):
        save(says("taking"), says(state="FAILED"))
    for step in ("copying", "refused"):
        with pytest.raises(Refused, match="words-1 is FAILED; there is no savepoint of it") as refusal:
            save(says("taking"), says(step, state="FAILED"), ends=True)
        assert refusal.value.hint is None
    done, *_ = save(says("done", state="KILLED", number=5), ends=True)
    assert done.number == 5


def test_nobody_says_how_it_went():
    with pytest.raises(TimedOut, match=f"no master has said within {30 + MARGIN:g} s how the savepoint went") as late:
        save(Unreachable("nobody"))
    assert late.value.hint == "the savepoint is whole if /there/savepoint.json is there"
    with pytest.raises(TimedOut) as late:
        save(says("copying"), ends=True)
    assert late.value.hint.endswith("`ardea list` shows whether the topology goes on")


def test_a_topology_that_is_gone_before_a_master_could_say_so_has_left_it(tmp_path):
    folder = Folder(tmp_path)
    folder.write(DESCRIPTION, [encode(STORED)])
    done, *_ = save(Unreachable("nobody"), folder=str(tmp_path), ends=True, why=lambda: None)
    assert (done.number, done.files) == (5, 0)
    for content in (encode(STORED)[:-5], encode(Savepoint(**{**_fields(), "request": "s"}))):
        folder.write(DESCRIPTION, [content])
        with pytest.raises(TimedOut):
            save(Unreachable("nobody"), folder=str(tmp_path), ends=True, why=lambda: None)


def test_what_lies_there_is_none_while_the_topology_goes_on(tmp_path):
    """A master has died before it could end it, and rows have flowed since: the next one saves it again."""
    Folder(tmp_path).write(DESCRIPTION, [encode(STORED)])
    done, said, _ = save(
        Unreachable("nobody"), says("copying"), says("done", number=7), folder=str(tmp_path), ends=True
    )
    assert (done.number, said) == (7, ["waiting for the topology master", "copying"])


def _fields():
    return {name: getattr(STORED, name) for name in Savepoint.__struct_fields__}


def test_those_beside_the_state_are_found_by_name_and_id(tmp_path):
    for topology, name, at in (("words-0a", "one", 1.0), ("words-0b", "two", 2.0), ("other-0a", "three", 3.0)):
        stored = Savepoint(**{**_fields(), "topology": topology, "at": at})
        Folder.at(savepoints_at(None, str(tmp_path), topology, name)).write(DESCRIPTION, [encode(stored)])
    place = savepoints_at(None, str(tmp_path))
    Folder.at(place).write("words-0a/half/t0/0.1/1-1.base", [b"half written"])
    Folder.at(place).write(f"words-0a/cut/{DESCRIPTION}", [b"{}"])
    found = savepoints_in(place, paths.called("words"))
    assert [(kept.topology, kept.folder) for kept in found] == [
        ("words-0b", f"{place}/words-0b/two"),
        ("words-0a", f"{place}/words-0a/one"),
    ]
    assert [kept.topology for kept in savepoints_in(place, paths.called("other-0a"))] == ["other-0a"]
    assert savepoints_in(savepoints_at(None, str(tmp_path / "none")), paths.called("words")) == []


def test_where_only_pods_reach_the_folder_the_topologys_state_says_that_it_is_there():
    control, now = Control(Unreachable("nobody")), [0.0]
    wanted = Wanted("words-1", "r", "/there", 30.0, ends=True)
    why = iter(["", "its savepoint is /elsewhere", "its savepoint is /there"])

    def pause(seconds):
        now[0] += seconds

    saving = Saving(control, wanted, lambda _: None, lambda: next(why), clock=lambda: now[0], pause=pause)
    done = saving.save()
    assert (done.step, done.folder, done.number, len(control.asked)) == ("done", "/there", 0, 3)
