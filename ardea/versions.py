"""What goes together of two versions of Ardea: two numbers, and the sentences that are said where they differ.

``PROTOCOL`` is that of messages: every hello, question, answer and summary carries it (docs/protocol.md).  ``FORMAT``
is that of what is stored: a topology's record and its definition carry it (docs/state.md).  A change after which the
former version could misread a message, or what is stored, raises the number.
"""

from __future__ import annotations

__version__ = "0.2.0.dev0"
PROTOCOL = 7
FORMAT = 3
UNNUMBERED = 1
"""The number of whatever carries none: versions that had one number only did not write it everywhere."""
ONE_VERSION = "all processes of a topology need one version: kill the topology and submit it again"
HERE = f"Ardea {__version__}"


def protocol_differs(me: str, peer: str, number: int, advice: str = ONE_VERSION) -> str:
    """Why ``me`` has nothing to do with a ``peer`` that said ``number``; empty: both speak one protocol."""
    number = number or UNNUMBERED
    if number == PROTOCOL:
        return ""
    return f"{peer} speaks protocol {number}, {me} speaks protocol {PROTOCOL} ({HERE}); {advice}"


def format_differs(topology: str, number: int, writer: str = "another version of Ardea") -> str:
    """What is to be said of a topology in the format ``number``; empty: it is this version's.

    ``writer``: the version that submitted it.
    """
    if number == FORMAT:
        return ""
    return f"{topology} was submitted by {writer} (format {number}), and this is {HERE} (format {FORMAT})"
