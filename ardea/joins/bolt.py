"""The bolt that joins two streams: it keeps their rows by key, and calls the author for what belongs together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.joins.checks import problems_of_join
from ardea.joins.declared import Join
from ardea.joins.joining import Joining
from ardea.keyed import KeyedState, State, states_of
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.ready_made import ReadyMade
from ardea.timers import Timers
from ardea.tuples import Tuple

ROWS, TIMERS = "__join", "__join_timers"
_OWN = ("process", "process_batch", "process_columns", "on_timer")


class JoinBolt(ReadyMade, Bolt):
    """Joins two streams, as ``join`` says, and calls :meth:`joined`: see docs/joins.md.

    Attributes:
        join: an ``IntervalJoin``, ``WindowJoin``, ``AsOfJoin`` or ``TableJoin``.
        joined_at: within :meth:`joined`, a stamp for what it emits that is not late further down: seconds since 1970;
            None where rows are joined without stamps.
    """

    join: Join
    joined_at: float | None = None
    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = {"joined": ("left", "right"), "removes": ("right",)}

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises UserError: the class cannot be a join."""
        super().__init_subclass__(**options)
        for method in _OWN:
            if getattr(cls, method) is not getattr(JoinBolt, method):
                raise UserError(
                    f"{cls.__name__} is a JoinBolt and has {method}(), which the join needs",
                    hint="Write joined(left, right); what else is to be done is another bolt's.",
                )
        if "join" not in vars(cls):
            return
        if not isinstance(cls.join, Join):
            raise UserError(
                f"{cls.__name__}: join is {cls.join!r}",
                hint="Write join = IntervalJoin(...), WindowJoin(...), AsOfJoin(...) or TableJoin(...).",
            )
        if timers := [state.name for state in states_of(cls) if isinstance(state, Timers) and state.name != TIMERS]:
            raise UserError(
                f"{cls.__name__} is a JoinBolt and has {timers[0]} = Timers(), which the join needs for itself",
                hint="Set timers in a bolt that reads the join.",
            )
        _declare(cls, ROWS, KeyedState(default=list, ttl=cls.join.ttl))
        _declare(cls, TIMERS, None if cls.join.stamps is None else Timers(time="event"))

    def joined(self, left: Tuple | None, right: Tuple | None) -> None:
        """Rows that belong together; None in the place of one: nobody belongs to the other.  Emits what it likes.

        Both are copies, which cannot be acked, failed or anchored to.
        """
        raise NotImplementedError

    def removes(self, right: Tuple) -> bool:  # noqa: ARG002
        """Of an ``AsOfJoin`` or ``TableJoin``: whether this row says that its key is gone from then on."""
        return False

    # --- the engine's -----------------------------------------------------------------------------------------

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        if not isinstance(getattr(cls, "join", None), Join):
            return [f"Component: [{component.name}]: {cls.__qualname__} has no join: write join = IntervalJoin(...)"]
        if cls.joined is JoinBolt.joined:
            return [f"Component: [{component.name}]: {cls.__qualname__} has no joined(left, right)"]
        return problems_of_join(cls.join, component, plan)

    def _ready_prepare(self, context: TopologyContext) -> None:
        """Likewise."""
        self._joining = Joining(self, context, getattr(self, ROWS), getattr(self, TIMERS))

    def process(self, tup: Tuple) -> None:
        """The engine's to call: a row of one side."""
        self._joining.came(tup)

    def on_timer(self, name: str, key: Any, at: float) -> None:  # noqa: ARG002
        """The engine's to call: rows of a key leave."""
        self._joining.passed(key, at)


def _declare(cls: type, name: str, state: State | None) -> None:
    """None: the class has none, whatever its bases have."""
    if state is not None:
        state.__set_name__(cls, name)
    setattr(cls, name, state)
