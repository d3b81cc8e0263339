"""Where things lie in the state: Heron's paths, under the topology's id.

A path is ``/kind/id`` or deeper.  The second segment is its *domain*: what one transaction may touch.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from ardea.errors import UserError

TOPOLOGIES = "/topologies"
PHYSICAL_PLANS = "/pplans"
FORMER_PLANS = "/formerplans"
EXECUTION_STATES = "/executionstate"
SCHEDULERS = "/schedulers"
MASTERS = "/tmasters"
TERMS = "/terms"
INCARNATIONS = "/incarnations"
TIMELINES = "/timelines"
NAMES = "/names"

KINDS = (
    TOPOLOGIES,
    PHYSICAL_PLANS,
    FORMER_PLANS,
    EXECUTION_STATES,
    SCHEDULERS,
    MASTERS,
    TERMS,
    INCARNATIONS,
    TIMELINES,
)
"""The folders that hold one node for each topology id."""

MAX_NAME_BYTES = 180
"""What a name may take in UTF-8, so that an id fits into a segment."""

MAX_SEGMENT_BYTES = 200
"""What a segment may take in UTF-8."""

_SEGMENT = re.compile(r"[\w$][\w.$-]*")
NODE_SUFFIX = ".node"
"""What the file of a node ends with; a segment must not."""


def topology(topology_id: str) -> str:
    """Who submitted what (:class:`~ardea.state.records.TopologyRecord`).  Its presence is the topology's root."""
    return f"{TOPOLOGIES}/{topology_id}"


def physical_plan(topology_id: str) -> str:
    """The routing content (:class:`~ardea.plan.definition.Definition`): the version of this node is the *epoch*."""
    return f"{PHYSICAL_PLANS}/{topology_id}"


def former_plan(topology_id: str) -> str:
    """What the routing content was, while an update can still be put back."""
    return f"{FORMER_PLANS}/{topology_id}"


def execution_state(topology_id: str) -> str:
    """Running, paused, ending, or the final state (:class:`~ardea.state.records.ExecutionState`)."""
    return f"{EXECUTION_STATES}/{topology_id}"


def timeline(topology_id: str) -> str:
    """What it goes back to after a loss (:class:`~ardea.state.records.TimelineRecord`)."""
    return f"{TIMELINES}/{topology_id}"


def scheduler(topology_id: str) -> str:
    """Who keeps the topology's processes (:class:`~ardea.state.records.SchedulerLocation`); locally a lease."""
    return f"{SCHEDULERS}/{topology_id}"


def master(topology_id: str) -> str:
    """Where the acting master listens (:class:`~ardea.state.records.MasterLocation`); a lease."""
    return f"{MASTERS}/{topology_id}"


def term(topology_id: str) -> str:
    """The version of this node is the *term* (:class:`~ardea.state.term.Term`)."""
    return f"{TERMS}/{topology_id}"


def incarnations(topology_id: str) -> str:
    """Admissions and addresses (:class:`~ardea.state.records.Incarnations`): they do not raise the epoch."""
    return f"{INCARNATIONS}/{topology_id}"


def name(topology_name: str) -> str:
    """The id that holds this name."""
    return f"{NAMES}/{topology_name}"


def every(topology_id: str) -> tuple[str, ...]:
    """All paths of one id, the root first."""
    return tuple(f"{kind}/{topology_id}" for kind in KINDS)


def split(path: str) -> tuple[str, ...]:
    """The segments of a path, validated; ValueError for a malformed one."""
    segments = tuple(path.split("/")[1:])
    if not path.startswith("/") or not all(map(is_segment, segments)):
        raise ValueError(f"not a state path: {path!r}")
    return segments


def domain(path: str) -> str:
    """The second segment: the topology's id, or its name under ``/names``; ValueError for ``/kind`` alone."""
    segments = split(path)
    if len(segments) < 2:
        raise ValueError(f"a node lies under /kind/id, not at {path!r}")
    return segments[1]


def new_topology_id(topology_name: str, *, token: Callable[[], str] = lambda: secrets.token_hex(4)) -> str:
    """The name, a dash and eight random hex digits, so that leftovers never block a submit.

    Raises:
        UserError: the name cannot be a part of a path.
    """
    if not is_segment(topology_name) or len(topology_name.encode()) > MAX_NAME_BYTES:
        raise UserError(
            f"{topology_name!r} cannot name a topology",
            hint=f"use letters, digits, _, $, . and -, beginning with none of the last two, "
            f"at most {MAX_NAME_BYTES} bytes",
        )
    return f"{topology_name}-{token()}"


def name_of(topology_id: str) -> str:
    """The name that :func:`new_topology_id` was given."""
    return topology_id.rpartition("-")[0]


def is_segment(segment: str) -> bool:
    """Whether this may stand between two slashes of a path."""
    return (
        _SEGMENT.fullmatch(segment) is not None
        and not segment.endswith(NODE_SUFFIX)
        and len(segment.encode()) <= MAX_SEGMENT_BYTES
    )


def called(name_or_id: str) -> Callable[[str], bool]:
    """Whether an id is that one, or one of that name."""
    return lambda topology_id: name_or_id in (topology_id, name_of(topology_id))
