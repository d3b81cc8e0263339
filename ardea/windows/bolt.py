"""A bolt whose rows are kept in windows, and that is called when one of them is to be seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

from ardea.component import Bolt
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.keyed import KeyedState
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.ready_made import ReadyMade
from ardea.tuples import ColumnBatch, TupleBatch
from ardea.windows.checks import problems_of_field, problems_of_stamps
from ardea.windows.kinds import Window, Windows

LATE = "late"
"""The stream that late rows go to, where the bolt declares it."""


class WindowState(KeyedState):
    """Of (key, what tells the parts of a key apart): a pair belongs to its key.

    Where no input is grouped by fields, each task has windows of its own, with a key that is the task's.
    """

    needs_keys = False

    def __init__(self, windows: Windows) -> None:
        """Declares it."""
        super().__init__(default=windows.fold.zero)
        self._kept_as = windows.kept_as

    @property
    def kind(self) -> str:
        """Another one than that of an author's state, or of other windows."""
        return f"KeyedState(windows, {self._kept_as})"


class Adding(Protocol):
    """The engine's: see :class:`ardea.heron_instance.windowing.Windowing`."""

    def add(self, rows: TupleBatch) -> None:
        """All of them."""

    def add_columns(self, columns: ColumnBatch) -> None:
        """All of their rows."""


class WindowBolt(ReadyMade, Bolt):
    """What declares windows, and gets them one by one: ``windows = Tumbling("1 min", on="at", fold=Count())``.

    Rows are acked once they are in their windows, which are kept as state is.  A class that declares the stream
    ``late``, with the fields of its input, emits late rows on it.

    Attributes:
        windows: which, and what is kept of their rows; an object of ``ardea.windows``.
    """

    windows: Windows
    _windows: Any = None
    _adding: Adding
    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "on_window": ("key", "window", "value"),
        "on_windows": ("window", "keys", "values"),
    }

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises UserError: there can be no such bolt."""
        super().__init_subclass__(**kwargs)
        windows = getattr(cls, "windows", None)
        if "windows" in vars(cls):
            if not isinstance(windows, Windows):
                raise UserError(
                    f"{cls.__name__}: windows is {windows!r}; write windows = Tumbling('1 min', on='FIELD')"
                )
            state = WindowState(windows)
            state.__set_name__(cls, "_windows")
            cls._windows = state
        for name in ("process", "process_batch", "process_columns"):
            if getattr(cls, name) is not getattr(WindowBolt, name):
                raise UserError(
                    f"{cls.__name__} has {name}(), and its rows go to windows",
                    hint="What is done with each row belongs in a bolt ahead of it; on_window() gets the windows.",
                )

    def on_window(self, key: Any, window: Window, value: Any) -> None:
        """A window is to be seen.  It may emit, and read and write the state of the key; what it emits is untracked.

        Args:
            key: of the fields grouping: the value of its field, or a tuple of several; None where no input is grouped
                by fields, and each task has windows of its own.
            window: its begin and end, and whether it is seen early, on time or late.
            value: the fold's result, or without a fold the list of rows, each a tuple of its values.
        """
        raise NotImplementedError

    def on_windows(self, window: Window, keys: Sequence[Any], values: Sequence[Any]) -> None:
        """Windows of several keys, up to 1,000, that begin and end together; the default passes on one by one."""
        on_window = self.on_window
        for key, value in zip(keys, values, strict=True):
            on_window(key, window, value)

    # --- the engine's -----------------------------------------------------------------------------------------

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        windows = getattr(cls, "windows", None)
        if not isinstance(windows, Windows):
            yield f"Component: [{component.name}] declares no windows: write windows = Tumbling('1 min', on='FIELD')"
            return
        if cls.on_window is WindowBolt.on_window and cls.on_windows is WindowBolt.on_windows:
            yield f"Component: [{component.name}] has no on_window(key, window, value)"
        if windows.on is not None:
            yield from problems_of_stamps(windows.on, component, plan)
        for field in windows.fold.fields:
            yield from problems_of_field(field, "its fold reads", component, plan)

    def _ready_prepare(self, context: TopologyContext) -> None:
        """See :class:`ReadyMade`."""

    def process_batch(self, rows: Any) -> None:
        """The rows go to their windows."""
        if isinstance(rows, ColumnBatch):
            self._adding.add_columns(rows)
        else:
            assert isinstance(rows, TupleBatch)
            self._adding.add(rows)
