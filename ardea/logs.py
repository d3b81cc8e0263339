"""What the processes of a topology log: the standard library's records, a line each, as text or as JSON.

The standard library only: supervisors and instances start with it.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Any, Literal, TextIO, cast, get_args

Format = Literal["text", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUPERVISOR = "ardea.supervisor"
_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ([A-Z]+) ")
_JSON = '{"time": "'
_OWN = frozenset((*logging.makeLogRecord({}).__dict__, "message", "asctime", "taskName"))
"""Attributes of each record; what a caller gave as ``extra`` has other names."""


class TextFormatter(logging.Formatter):
    """Time, level, logger, message, and ``key=value`` of each ``extra``."""

    def __init__(self) -> None:
        super().__init__(_TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        """The line without a traceback."""
        return " ".join((super().formatMessage(record), *(f"{key}={value!r}" for key, value in _extra(record))))


class JsonFormatter(logging.Formatter):
    """One object a record: ``time`` (UTC), ``level``, ``logger``, ``message``, each ``extra``, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; values that JSON does not know are written as Python shows them."""
        said = _json_of(record.created, record.levelname, record.name, record.getMessage())
        extra = {key: value for key, value in _extra(record) if key not in said}
        trouble = [self.formatException(record.exc_info)] if record.exc_info else []
        trouble += [self.formatStack(record.stack_info)] if record.stack_info else []
        shown = {"exception": "\n".join(trouble)} if trouble else {}
        try:
            return json.dumps(said | extra | shown, default=repr, allow_nan=False)
        except (ValueError, TypeError):  # a value that contains itself, NaN, a key that is no text
            return json.dumps(said | {key: repr(value) for key, value in extra.items()} | shown)


def handler(form: Format, stream: TextIO | None = None) -> logging.Handler:
    """Writes to ``stream``, by default stdout."""
    made = logging.StreamHandler(stream or sys.stdout)
    made.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    return made


def configure(form: Format = "text", stream: TextIO | None = None) -> None:
    """All records of level INFO and above go to ``stream``, by default stdout."""
    logging.basicConfig(level=logging.INFO, handlers=[handler(form, stream)], force=True)


def give_way() -> None:
    """From now on ``logging.basicConfig`` of an author's code does what it does in a program that calls it first."""
    root, given = logging.getLogger(), logging.basicConfig
    ours = [*root.handlers]

    def basic_config(**options: Any) -> None:
        if root.handlers == ours:
            root.handlers.clear()
        given(**options)

    logging.basicConfig = basic_config


def mark(text: str, form: Format, now: float) -> bytes:
    """A line of the supervisor's own in the log of a process; ``now``: Unix seconds."""
    if form == "json":
        return f"{json.dumps(_json_of(now, 'INFO', SUPERVISOR, text))}\n".encode()
    return f"--- {text} ---\n".encode()


def written_at(line: str) -> float | None:
    """Unix seconds of a record of either format, as this machine's clock and zone have it; None: it is no record."""
    try:
        if said := _members(line):
            return datetime.fromisoformat(said["time"]).timestamp()
        return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp() if _RECORD.match(line) else None  # noqa: DTZ007
    except (ValueError, TypeError):
        return None


def level_of(line: str) -> int | None:
    """The level of a record of either format; None: it is no record."""
    found = _RECORD.match(line)
    name = found[1] if found else _members(line).get("level")
    return logging.getLevelNamesMapping().get(name) if isinstance(name, str) else None


def message_of(line: str, logger: str) -> str | None:
    """What this logger says in a record of either format, of level INFO; None: the line is none of its records."""
    if (said := _members(line)).get("logger") == logger:
        return str(said.get("message"))
    _, mark, text = line.partition(f" INFO {logger}: ")
    return text if mark else None


def _members(line: str) -> dict[str, Any]:
    """Those of a record as JSON; none of another line."""
    try:
        return cast("dict[str, Any]", json.loads(line)) if line.startswith(_JSON) else {}
    except ValueError:
        return {}


def _extra(record: logging.LogRecord) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in record.__dict__.items() if key not in _OWN]


def _json_of(now: float, level: str, logger: str, message: str) -> dict[str, Any]:
    time = datetime.fromtimestamp(now, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"time": time, "level": level, "logger": logger, "message": message}
