"""When a container's pod is ready."""

from __future__ import annotations

import pytest

from ardea.health.words import CUT_OFF
from ardea.metrics.registry import Identity
from ardea.metrics_manager.readiness import Readiness
from ardea.metrics_manager.server import MetricsManager
from ardea.metrics_manager.supervised import LARGEST, LOOK_EVERY, Supervised
from ardea.supervision.records import Exit, write_exit, write_status
from tests.unit.metrics_manager.test_server import get


def wrote(folder):
    process = {"state": "waiting", "pid": None, "life": 4, "restarts": 3, "reason": None}
    write_status(folder, {"supervisor": "x", "pid": 1, "state": "ended", "processes": {"words-0": process}})
    for at in (1.0, 2.0, 3.0):
        write_exit(folder, Exit("words-0", 1, 1, 75, None, "exit 75 (words-0: ValueError: boom)", at))


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def supervised(folder, clock):
    return Supervised(folder, 1, clock=clock, wall=lambda: 4.0 + clock.now)


def test_files_are_read_once_a_second(tmp_path):
    clock = Clock()
    looks = supervised(tmp_path, clock)
    assert looks.rows() == []
    wrote(tmp_path)
    clock.now = LOOK_EVERY - 0.1
    assert looks.rows() == []
    clock.now = LOOK_EVERY
    assert [row.name for row in looks.rows()] == ["words-0"]


@pytest.mark.parametrize(
    "foreign",
    [
        '{"processes": ',
        "[]",
        '{"processes": {"words-0": {}}}',
        '{"processes": {"words-0": {"state": 7, "pid": null, "life": 1}}}',
        '{"processes": {"words-0": {"state": "running", "pid": "\\u0000", "life": 1}}}',
        '{"processes": {"words-0": {"state": "running", "pid": 1%s, "life": 1}}}' % ("0" * 30),
        '{"processes": {"words-0": {"state": "running", "pid": null, "life": -1%s}}}' % ("0" * 30),
        '{"processes": {"\\ud800": {"state": "running", "pid": null, "life": 1}}}',
        '{"x": "' + "x" * LARGEST + '"}',
    ],
    ids=["torn", "list", "empty", "number", "text", "pid", "life", "name", "large"],
)
def test_a_file_that_cannot_be_understood_leaves_what_was_known_and_hides_no_other(tmp_path, foreign):
    """In a pod it is user code's to write."""
    for task in ("a-0", "b-0"):
        (tmp_path / task).mkdir()
        wrote(tmp_path / task)
    clock = Clock()
    looks = supervised(tmp_path, clock)
    known = looks.rows()
    assert len(known) == 2
    (tmp_path / "a-0" / "status.json").write_text(foreign)
    clock.now = LOOK_EVERY
    assert looks.rows() == known


@pytest.mark.parametrize("names", [["words-0"], [f"other-{i}" for i in range(4)]], ids=["one", "several"])
def test_of_ends_that_are_too_long_nothing_is_read(tmp_path, names):
    folder = tmp_path / "a-0"
    folder.mkdir()
    wrote(folder)
    clock = Clock()
    looks = supervised(tmp_path, clock)
    known = looks.rows()
    wrote(folder)
    for name in names:
        write_exit(folder, Exit(name, 2, 1, 75, None, "x" * (LARGEST // len(names)), 4.0))
    clock.now = LOOK_EVERY
    assert looks.rows() == known


def test_what_is_no_file_is_not_read(tmp_path):
    (tmp_path / "a-0").mkdir()
    (tmp_path / "a-0" / "status.json").symlink_to("/dev/zero")
    assert supervised(tmp_path, Clock()).rows() == []


def test_a_task_of_a_pod_speaks_for_one_process_only(tmp_path):
    """Its folder is its own to write; a thousand names there are not the master's burden."""
    (tmp_path / "words-0").mkdir()
    process = {"state": "running", "pid": None, "life": 1, "restarts": 0, "reason": None}
    status = {"supervisor": "x", "pid": 1, "state": "ended", "processes": {f"n-{i}": process for i in range(1000)}}
    write_status(tmp_path / "words-0", status)
    assert len(supervised(tmp_path, Clock()).rows()) == 1


def test_a_pod_is_not_ready_while_a_process_dies_again_and_again(tmp_path):
    clock = Clock()
    ready = Readiness(supervised(tmp_path, clock), None)
    manager = MetricsManager(Identity("words", 1, "metrics_manager"))
    try:
        port = manager.serve(0, why_not_ready=ready.why_not)
        assert get(port, "/readyz") == (200, "ok\n")
        wrote(tmp_path)
        clock.now = LOOK_EVERY
        assert get(port, "/readyz") == (503, "words-0 died 3 times in 2 s: ValueError: boom\n")
        assert get(port, "/healthz") == (200, "ok\n")
    finally:
        manager.close()


def test_a_master_is_not_ready_while_it_is_cut_off(tmp_path):
    silence = 0.0
    ready = Readiness(supervised(tmp_path, Clock()), lambda: silence)
    assert ready.why_not() == []
    silence = CUT_OFF + 1
    assert ready.why_not() == ["cut off from the topology's state: the state manager has not answered for 11 s"]
