"""The ``ardea`` command.  Loading its verbs takes a while, in which it can be stopped as at any other time."""

from __future__ import annotations

import os
import signal
import sys

_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INTERRUPTED = 130  # as in ardea.errors, which is not loaded yet


def main() -> None:
    """The console script."""
    stops = [n for n in _STOPS if signal.getsignal(n) is not signal.SIG_IGN]  # nohup
    for number in stops:
        signal.signal(number, _leave)
    from ardea.cli.streams import Unwritable, guard

    guard()
    try:
        from ardea.cli import console
        from ardea.cli.verbs import app
    except ModuleNotFoundError as error:  # in an image of the engine alone
        if error.name not in ("rich", "typer", "watchfiles"):
            raise
        sys.exit(
            f"error: the command line needs {error.name}, which is not installed\n  hint: pip install 'ardea[cli]'"
        )
    for number in stops:
        signal.signal(number, signal.default_int_handler)
    try:
        app(prog_name="ardea")
    except Unwritable as error:
        sys.exit(1 if error.unread else console.report(error))  # as `head` does to others
    finally:
        for number in stops:
            signal.signal(number, _leave)


def _leave(*_: object) -> None:
    """Before a verb and behind it nothing is open, and an exception would be shown, or lost inside an import."""
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
