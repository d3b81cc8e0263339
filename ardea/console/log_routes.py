"""Routes of what processes print: logs, as they are or as they come."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic as clock

from starlette.requests import Request
from starlette.responses import Response

from ardea.console.desk import Desk, Parameter, Route, sent, whole
from ardea.console.documents import Line, Log
from ardea.console.following import Lines, followed
from ardea.console.problems import LONGEST, Refused
from ardea.console.tokens import Right
from ardea.documents.levels import Level, Levels
from ardea.errors import Unreachable, printable
from ardea.scheduler.schedulers import LogLine, Logs

TAIL, MOST = 500, 5000
MOST_IN_ALL = 20_000
"""Lines of one answer; of many processes each has fewer."""
LONG_AGO = 10**9
"""Seconds."""
ALL = "_"
"""Names the logs of all processes."""
READ_WITHIN = 10.0
"""Seconds after which an answer has what was read by then."""
_QUERY = (
    Parameter(
        "tail", "of each process the last so many", {"type": "integer", "minimum": 0, "maximum": MOST, "default": TAIL}
    ),
    Parameter("since", "of the last so many seconds", {"type": "integer", "minimum": 0, "maximum": LONG_AGO}),
    Parameter("search", "only lines with this text, in whatever case", {"type": "string", "maxLength": 200}),
    Parameter(
        "level", "only records of this level or above", {"type": "string", "enum": [each.value for each in Level]}
    ),
    Parameter("follow", "go on, as server-sent events `lines`", {"type": "boolean", "default": False}),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a log is asked for; ``process`` is a label, empty: of all that the selection names."""

    selection: str | None
    process: str
    tail: int
    since: int | None
    search: str
    level: Level | None

    @classmethod
    def of(cls, request: Request) -> Wanted:
        """What a request says.

        Raises:
            Refused: it cannot be understood.
        """
        named, query = request.path_params["process"], request.query_params
        container, slash, manager = named.rpartition("/")
        level = query.get("level")
        if level is not None and level.upper() not in Level.__members__:
            raise Refused(400, f"level takes one of {', '.join(Level)}, not {level[:50]!r}")
        return cls(
            selection=None if named == ALL else manager,
            process=named if container and slash else "",
            tail=whole(request, "tail", TAIL, 0, MOST),
            since=whole(request, "since", 0, 0, LONG_AGO) if "since" in query else None,
            search=query.get("search", "")[:200].casefold(),
            level=None if level is None else Level(level.upper()),
        )

    def lines(self, logs: Logs, *, follow: bool) -> Iterator[Line | None]:
        """Those that pass; None now and then, also while none does."""
        levels = Levels(self.level)
        some = self.search or self.level or self.process
        tail = self.tail if not some or self.tail == 0 else None
        for number, line in enumerate(logs.lines(self.selection, follow=follow, tail=tail, since=self.since)):
            if line is None or not self._passes(levels, line):
                if line is None or number % 1000 == 0:
                    yield None
                continue
            yield Line(process=printable(line.label), text=printable(line.text, LONGEST))

    def _passes(self, levels: Levels, line: LogLine) -> bool:
        passes = levels.passes(line)  # each line: those behind a record have its level
        return passes and self.process in ("", line.label) and self.search in line.text.casefold()


async def _log(desk: Desk, request: Request) -> Response:
    wanted = Wanted.of(request)
    topology = (await desk.topology(request.path_params["name"])).id
    if request.query_params.get("follow", "false") in ("true", "1"):
        return await _followed(desk, topology, wanted)

    def read() -> Log:
        with desk.scheduler.logs(topology) as logs:
            return _read(logs, wanted)

    return sent(request, await asyncio.get_running_loop().run_in_executor(desk.threads, read))


def _read(logs: Logs, wanted: Wanted) -> Log:
    """The last lines of each process, as they are now."""
    named = len(logs.names(wanted.selection))  # of a name in all containers, of which one may be wanted
    most = min(wanted.tail, MOST_IN_ALL // (1 if wanted.process else max(1, named)))
    kept: defaultdict[str, deque[Line]] = defaultdict(lambda: deque(maxlen=most))
    passed, cut, deadline = 0, False, clock() + READ_WITHIN
    try:
        for line in wanted.lines(logs, follow=False):
            if line is not None:
                kept[line.process].append(line)
                passed += 1
            if cut := clock() >= deadline:
                break
    except Unreachable:  # of one of them; what others have printed is told
        if not kept:
            raise
        cut = True
    lines = [line for each in kept.values() for line in each]
    return Log(lines=lines, left_out=passed - len(lines), cut=cut)


async def _followed(desk: Desk, topology: str, wanted: Wanted) -> Response:
    def check() -> None:
        with desk.scheduler.logs(topology) as logs:
            logs.names(wanted.selection)

    def lines() -> Lines:
        with desk.scheduler.logs(topology) as logs:
            yield from wanted.lines(logs, follow=True)

    return await followed(desk, f"the log of {topology}", check, lines)


ROUTES = (
    Route(
        path="/topologies/{name}/logs/{process:path}",
        right=Right.ACT,
        answer=_log,
        gives=(Log,),
        about="The log of a component, a task or a process",
        parameters=_QUERY,
        events="also",
    ),
)
