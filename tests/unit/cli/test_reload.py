"""What `ardea run --reload` does about a file that is gone, and about folders that cannot be watched."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import watchfiles

from ardea.cli.reload import Changes, run_anew
from ardea.errors import ClusterError, NotFound, UserError

CHANGE = {(watchfiles.Change.modified, "a.py")}


class Watcher:
    """In the place of `watchfiles.watch`: takes an ``answer`` for each time that it begins, and sees nothing after it.

    An answer is an exception, or how many changes are seen.
    """

    def __init__(self, *answers):
        self.answers, self.begun = [*answers], []

    def __call__(self, *paths, stop_event, recursive=True, **_):
        self.begun.append((sorted(map(str, paths)), recursive))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        for _ in range(answer):
            yield CHANGE
        stop_event.wait()


@pytest.fixture
def watcher(monkeypatch):
    def begin(*answers):
        made = Watcher(*answers)
        monkeypatch.setattr(watchfiles, "watch", made)
        return made

    return begin


class Runs:
    """Runs that a change ends, and the last one Ctrl-C; ``answers``: what loading the file meets with, each time."""

    def __init__(self, *answers):
        self.answers, self.begun = [*answers], 0

    def load(self):
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def watch_of(self, _submission):
        self.begun += 1
        return SimpleNamespace(run_to_end=lambda: "ended", interrupted=not self.answers)


@pytest.fixture
def anew(tmp_path, monkeypatch):
    """Runs anew, with a change after each time; returns the runs."""
    monkeypatch.setattr(Changes, "_look", lambda _: None)
    monkeypatch.setattr(Changes, "wait", lambda _: None)

    def run(*answers):
        runs = Runs(*answers)
        run_anew(str(tmp_path / "wc.py"), runs.load, runs.watch_of)
        return runs

    return run


@pytest.mark.parametrize("gone", [NotFound("there is no topology file wc.py"), FileNotFoundError("words.py")])
def test_a_file_that_is_gone_is_told_and_awaited(anew, capsys, gone):
    """As while a branch is switched."""
    runs = anew("first", gone, "second")
    assert runs.begun == 2
    assert f"error: {gone}" in capsys.readouterr().err


def test_a_file_that_cannot_be_loaded_is_awaited_from_the_first_time_on(anew):
    assert anew(UserError("SyntaxError"), "first").begun == 1
    assert anew(UserError("SyntaxError"), NotFound("there is no topology file wc.py"), "first").begun == 1


def test_a_file_that_never_was_is_a_wrong_name(anew):
    with pytest.raises(NotFound):
        anew(NotFound("there is no topology file wc.py"))


def test_a_folder_that_may_not_be_read_hides_no_change_of_others(tmp_path, watcher):
    (tmp_path / "package").mkdir()
    begun = watcher(PermissionError("Permission denied"), 1)
    with Changes(tmp_path) as changes:
        changes.wait()
        assert changes.seen
    assert begun.begun == [([str(tmp_path)], True), ([str(tmp_path), str(tmp_path / "package")], False)]


@pytest.mark.parametrize(
    "answers",
    [
        [OSError("OS file watch limit reached")],
        [RuntimeError("OS file watch limit reached")],
        [PermissionError("Permission denied"), PermissionError("OS file watch limit reached")],
    ],
)
def test_who_cannot_watch_says_so(tmp_path, watcher, answers):
    watcher(*answers)
    with Changes(tmp_path) as changes, pytest.raises(ClusterError) as refused:
        changes.wait()
    said = f"changes of files below {tmp_path} cannot be seen: OS file watch limit reached"
    assert refused.value.message == said
