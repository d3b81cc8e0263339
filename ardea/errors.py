"""Every error that Ardea raises on purpose, and the exit code of each.

    ArdeaError
     +-- UserError            the author of a topology, or the caller of a verb, must act
     |    +-- TopologyError   the topology is wrong; ``problems`` lists all that is
     |    +-- ConfigError     a configuration key or value is wrong
     |    +-- EncodingError   a value cannot travel
     |    +-- UnknownField    a tuple has no field of that name
     |    +-- Misuse          a component calls the engine, or answers it, as it never should
     |    +-- UsageError      an option cannot be read, or excludes another
     |    +-- FailedException raised by user code to fail a tuple quietly
     +-- RunFailed            a topology of ``ardea.run`` has not SUCCEEDED
     +-- StateError           the state manager's contents or storage are at fault
     |    +-- NotFound        no such topology or path
     |    +-- Conflict        somebody else changed it, or it exists already
     +-- ClusterError         processes, ports, disks: whoever runs the machine must act
     |    +-- Unreachable     nobody answers within the deadline
     |    +-- Unrecognized    the cluster does not know who asks
     |    +-- TimedOut        what was asked for has not happened in time
     +-- ProtocolError        two processes disagree; ``code`` says how (docs/protocol.md)
          +-- Replaced        another container has the place
          +-- OtherVersion    they are of different versions of Ardea
          +-- LeftOut         a plan had left this process out, and the present one has it again

A message says what happened, where, what happens next, and what to do.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence


class ExitCode(enum.IntEnum):
    """What a process or a verb ends with; stable, documented in docs/cli.md."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    TIMED_OUT = 4
    UNREACHABLE = 5
    INVALID = 6
    CONFLICT = 7
    TEMPORARY = 75
    REPLACED = 76
    PERMANENT = 78
    INTERRUPTED = 130


_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff"
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]|\r(?!\n)"
)
"""Control characters but tabs and ends of lines, halves of a pair, and what turns, ends or hides text."""


def escaped(text: str) -> str:
    """Text that others made, as a terminal may show it: what would act on the terminal is written as in Python."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(what: object, most: int = 500) -> str:
    """The text of an error, which an author may have made of anything, for messages, logs and terminals.

    What a terminal would obey, and what UTF-8 does not have, is escaped.  The text is cut after ``most`` characters.
    """
    try:
        text = str(what)
    except Exception:  # an exception's own __str__
        text = f"<{type(what).__name__} that has no text>"
    if len(text) > most:
        text = f"{text[:most]}... ({len(text):,} characters)"
    return escaped(text)


def is_text(text: str) -> bool:
    """Whether UTF-8 has all of it: a file's name may have halves of a pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class ArdeaError(Exception):
    """The root.  ``hint`` is what the reader can do about it, if anything.

    ``lasts``: a task that has raised it would raise it again, however often it is started.
    """

    exit_code = ExitCode.FAILED
    lasts = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(ArdeaError):
    """The author of the topology, or the caller of the command, must act.

    ``place``: the author's line that it is about (``words.py:12``), where no traceback leads there.  ``certain``: every
    tuple would meet it, whatever its values are, so that a task which has not done a single one yet cannot go on.
    """

    exit_code = ExitCode.INVALID
    place = ""
    certain = False


class TopologyError(UserError):
    """A topology that cannot run.  All problems are reported at once."""

    def __init__(self, problems: Sequence[str], *, hint: str | None = None) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems), hint=hint)


class ConfigError(UserError):
    """An unknown or ill-typed configuration key."""


class EncodingError(UserError):
    """A value that cannot be sent: unencodable, or larger than its limit."""


class UnknownField(UserError, KeyError):  # noqa: N818
    """A tuple has no field of that name; as for any mapping a KeyError."""

    certain = True

    def __str__(self) -> str:
        return self.message


class Misuse(UserError):  # noqa: N818
    """A component calls the engine, or answers it, in a way that is never right."""

    certain = True


class UsageError(UserError):
    """An option that cannot be read, or that makes no sense beside another."""

    exit_code = ExitCode.USAGE


class FailedException(UserError):  # noqa: N818 -- Storm's name, which its users know
    """Raised by a bolt to fail the current tuple without an error report."""

    lasts = False

    def __init__(self, message: str = "", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class RunFailed(ArdeaError):  # noqa: N818
    """What ``RunResult.raise_for_state`` raises."""


class StateError(ArdeaError):
    """The state manager cannot read or write what it must."""


class NotFound(StateError):  # noqa: N818
    """There is no such topology, or no such path in the state."""

    exit_code = ExitCode.NOT_FOUND


class Conflict(StateError):  # noqa: N818
    """A versioned write lost, or the thing exists already."""

    exit_code = ExitCode.CONFLICT


class ClusterError(ArdeaError):
    """The machine or its processes are at fault: ports, disks, signals."""


class TooFewFiles(ClusterError):  # noqa: N818
    """A container's processes may not open as many files as they need: starting again there cannot help."""

    exit_code = ExitCode.PERMANENT


class Unreachable(ClusterError):  # noqa: N818
    """Nobody answered within the deadline."""

    exit_code = ExitCode.UNREACHABLE


class Unrecognized(ClusterError):  # noqa: N818
    """The cluster does not know who asks: a token has expired, or belongs to an account that is gone."""


class TimedOut(ClusterError):  # noqa: N818
    """What was asked for has not happened in time; it may yet."""

    exit_code = ExitCode.TIMED_OUT


class ProtocolError(ArdeaError):
    """A peer refused us, or we refused it.  ``code`` is a row of docs/protocol.md."""

    exit_code = ExitCode.TEMPORARY

    def __init__(self, code: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"{code}: {message}", hint=hint)
        self.code = code
        self.reason = message


class Replaced(ProtocolError):  # noqa: N818
    """Another container was admitted in the place of this one's, which has to end."""

    exit_code = ExitCode.REPLACED


class OtherVersion(ProtocolError):  # noqa: N818
    """A peer, or the topology that this process was started for, is of another version: starting again cannot help."""

    exit_code = ExitCode.PERMANENT


class LeftOut(ProtocolError):  # noqa: N818
    """A plan had left this process out, and the present one has it again: it goes on in a new life."""

    lasts = False


REFUSALS = {"REPLACED": Replaced, "OTHER_VERSION": OtherVersion, "LEFT_OUT": LeftOut}


def refused(code: str, message: str) -> ProtocolError:
    """What a peer's refusal means to this process."""
    return REFUSALS.get(code, ProtocolError)(code, message)


def without_key(text: str) -> str:
    """As it may stand in a log: a URI's user and password, or access key, left out."""
    return re.sub(r"://[^/\s@]*@", "://", text)
