"""Errors as documents: the words of the command line, and a status of HTTP."""

from __future__ import annotations

from ardea.console.documents import Problem
from ardea.errors import ArdeaError, Conflict, NotFound, TimedOut, Unreachable, UserError, printable

_STATUSES: tuple[tuple[type[ArdeaError], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (UserError, 400),
    (TimedOut, 504),
    (Unreachable, 503),
)
TITLES = {
    400: "It cannot be done so",
    401: "No token",
    403: "Not allowed",
    404: "Not found",
    405: "Not by this method",
    409: "Something else would happen",
    413: "Too large",
    421: "Not the console's name",
    500: "It failed",
    503: "Nobody answers",
    504: "Not in time",
}
LONGEST = 10_000
"""Characters of a text that others have made."""


class Refused(ArdeaError):  # noqa: N818 -- as its siblings in ardea.errors
    """A request that is not answered; ``status`` is HTTP's."""

    def __init__(self, status: int, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


def problem(error: ArdeaError, where: str) -> Problem:
    """The document of an error; ``where``: the path that was asked for."""
    status = status_of(error)
    return Problem(
        title=TITLES[status],
        status=status,
        what=printable(error.message, LONGEST),
        where=printable(where, LONGEST),
        hint=None if error.hint is None else printable(error.hint, LONGEST),
    )


def status_of(error: ArdeaError) -> int:
    """HTTP's."""
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
