"""What processes log, as text and as JSON; and an author's own logging.basicConfig."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ardea import logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """As in a process of its own: whatever a test does to it is undone."""
    root = logging.getLogger()
    handlers, level, basic_config = [*root.handlers], root.level, logging.basicConfig
    root.handlers.clear()
    try:
        yield root
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.basicConfig = basic_config


@pytest.fixture
def printed(root: logging.Logger) -> io.StringIO:
    return io.StringIO()


def test_text_has_the_extra_values_after_the_message(printed):
    logs.configure("text", printed)
    logging.getLogger("stream-manager").warning("plan %d received", 3, extra={"epoch": 3, "holder": "a b"})
    line = printed.getvalue()
    assert line.endswith(" WARNING stream-manager: plan 3 received epoch=3 holder='a b'\n")


def test_json_is_one_object_a_record(printed):
    logs.configure("json", printed)
    log = logging.getLogger("stream-manager")
    log.info("plan %d\nreceived", 3, extra={"epoch": 3, "who": object, "level": "mine"})
    try:
        raise ValueError("no such table")
    except ValueError:
        log.exception("it failed")
    log.debug("not shown")
    plain, failed = map(json.loads, printed.getvalue().splitlines())
    assert plain.pop("time")[10] == "T"
    assert plain == {
        "level": "INFO",
        "logger": "stream-manager",
        "message": "plan 3\nreceived",
        "epoch": 3,
        "who": "<class 'object'>",
    }
    assert failed["exception"].startswith("Traceback")
    assert failed["exception"].endswith("ValueError: no such table")


def test_json_of_what_json_does_not_know(printed):
    logs.configure("json", printed)
    itself: list[object] = []
    itself.append(itself)
    for value in (itself, float("nan"), {1: {2, 3}, ("a",): 4}, "\ud800"):
        logging.getLogger("a").info("value", extra={"value": value})
    lines = [json.loads(line, parse_constant=pytest.fail) for line in printed.getvalue().splitlines()]
    assert [line["message"] for line in lines] == ["value"] * 4
    assert lines[0]["value"] == "[[...]]"
    assert lines[1]["value"] == "nan"


def test_the_time_of_a_record_is_utc(printed):
    logs.configure("json", printed)
    record = logging.makeLogRecord({"name": "a", "levelno": logging.INFO, "msg": "x", "created": 1_700_000_000.25})
    logging.getLogger().handle(record)
    assert json.loads(printed.getvalue())["time"] == "2023-11-14T22:13:20.250Z"


def test_the_supervisors_own_lines():
    assert logs.mark("life 1 started, pid 7", "text", 0.0) == b"--- life 1 started, pid 7 ---\n"
    assert json.loads(logs.mark("life 1 started, pid 7", "json", 1.5)) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "INFO",
        "logger": "ardea.supervisor",
        "message": "life 1 started, pid 7",
    }


def test_an_author_who_calls_basic_config_has_the_last_word(root, printed):
    ours, theirs = printed, io.StringIO()
    logs.configure("text", ours)
    logs.give_way()
    logging.getLogger("a").info("before")
    logging.basicConfig(level=logging.DEBUG, format="mine: %(message)s", stream=theirs)
    logging.getLogger("a").debug("after")
    logging.basicConfig(format="once only: %(message)s", stream=ours)
    logging.getLogger("a").debug("again")
    assert ours.getvalue().endswith(" INFO a: before\n")
    assert theirs.getvalue() == "mine: after\nmine: again\n"


def test_an_author_who_only_logs_changes_nothing(root, printed):
    logs.configure("text", printed)
    logs.give_way()
    logging.info("by the root")
    logging.getLogger("a").info("by a logger")
    assert [line.split(" ", 2)[2] for line in printed.getvalue().splitlines()] == [
        "INFO root: by the root",
        "INFO a: by a logger",
    ]
