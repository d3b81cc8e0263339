"""The bolt that looks rows up elsewhere, many at a time, and remembers what it has found."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, ClassVar, get_args

from ardea.collectors import Values
from ardea.component import DEFAULT_STREAM, Bolt
from ardea.context import TopologyContext
from ardea.errors import EncodingError, UserError
from ardea.joins.declared import Bound, LeftHow
from ardea.plan import ComponentPlan, LogicalPlan
from ardea.protocol.dict_keys import as_key
from ardea.ready_made import ReadyMade
from ardea.tuples import Tuple
from ardea.units import duration, integer
from ardea.validation import stream_of


class LookupJoin:
    """By which fields rows are looked up, and what is remembered of that."""

    def __init__(self, *fields: str, how: LeftHow = "inner", size: int = 10_000, ttl: Bound | None = None) -> None:
        """Declares it.

        Args:
            fields: whose values are the key: of one field its value, of several a tuple.
            how: ``left``: rows come alone for which nothing is found.
            size: keys that a task remembers, those that were used last; 0: none.
            ttl: seconds, or a text such as ``10 min``, after which a key is looked up again; None: never.

        Raises:
            UserError: an argument is none of that.
        """
        if not fields or not all(isinstance(field, str) and field for field in fields):
            raise UserError(f"LookupJoin{fields!r}: it takes the names of the fields that are the key")
        if how not in get_args(LeftHow):
            raise UserError(f"LookupJoin: how={how!r}", hint="how takes 'inner' or 'left'.")
        try:
            self.size = integer(size)
            self.ttl = math.inf if ttl is None else duration(ttl)
        except ValueError as error:
            raise UserError(f"LookupJoin: size={size!r}, ttl={ttl!r}: one of them is not {error}") from None
        self.fields, self.how = fields, how


class Cache:
    """What was found for the keys that were used last.  ``clock``: steady seconds."""

    def __init__(self, size: int, ttl: float, clock: Callable[[], float]) -> None:
        self._size, self._ttl, self._clock = size, ttl, clock
        self._found: OrderedDict[Any, tuple[float, Any]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def known(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """What is there of these keys, and not too old."""
        now, known = self._clock(), {}
        for key in keys:
            entry = self._found.get(key)
            if entry is not None and now < entry[0]:
                self._found.move_to_end(key)
                known[key] = entry[1]
        return known

    def keep(self, found: Mapping[Any, Any]) -> None:
        """What was found just now; keys that were not used for longest make room."""
        until = self._clock() + self._ttl
        for key, value in found.items():
            self._found[key] = until, value
            self._found.move_to_end(key)
        while len(self._found) > self._size:
            self._found.popitem(last=False)


class LookupBolt(ReadyMade, Bolt):
    """Calls :meth:`joined` for each row with what :meth:`lookup` finds for its key: see docs/joins.md.

    Attributes:
        join: a ``LookupJoin``.
    """

    join: LookupJoin
    _ready_calls: ClassVar[Mapping[str, tuple[str, ...]]] = {"lookup": ("keys",), "joined": ("left", "right")}
    __row: Tuple | None = None
    __refused = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises UserError: the class cannot be a lookup."""
        super().__init_subclass__(**options)
        for method in ("process", "process_batch", "process_columns"):
            if getattr(cls, method) is not getattr(LookupBolt, method):
                raise UserError(
                    f"{cls.__name__} is a LookupBolt and has {method}(), which the lookup needs",
                    hint="Write lookup(keys) and joined(left, right).",
                )
        if "join" in vars(cls) and not isinstance(cls.join, LookupJoin):
            raise UserError(f"{cls.__name__}: join is {cls.join!r}", hint="Write join = LookupJoin('FIELD').")

    def lookup(self, keys: Sequence[Any]) -> Mapping[Any, Any]:
        """What there is for these keys, which are all different: key -> what ``joined`` gets.

        A key that is not in it, or is None, has found nobody.  What it raises fails the rows that have come together.
        """
        raise NotImplementedError

    def joined(self, left: Tuple, right: Any) -> None:
        """A row with what was found; None, of a ``left`` join: nothing was.  Emits what it likes."""
        raise NotImplementedError

    def emit(
        self,
        values: Values,
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """As of each bolt, and within :meth:`joined` anchored to its row alone."""
        return super().emit(values, stream, self.__anchors(anchors), direct_task, need_task_ids)

    def emit_many(
        self,
        rows: Iterable[Values],
        stream: str = DEFAULT_STREAM,
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_counts: bool = False,
        *,
        head: tuple[Any, ...] = (),
    ) -> Mapping[int, int] | None:
        """Likewise."""
        return super().emit_many(rows, stream, self.__anchors(anchors), direct_task, need_task_counts, head=head)

    # --- the engine's -----------------------------------------------------------------------------------------

    @classmethod
    def _ready_problems(cls, component: ComponentPlan, plan: LogicalPlan) -> Iterable[str]:
        """See :class:`ReadyMade`."""
        where, name = f"Component: [{component.name}]", cls.__qualname__
        if not isinstance(getattr(cls, "join", None), LookupJoin):
            yield f"{where}: {name} has no join: write join = LookupJoin('FIELD')"
            return
        for method in cls._ready_calls:
            if getattr(cls, method) is getattr(LookupBolt, method):
                yield f"{where}: {name} has no {method}({', '.join(cls._ready_calls[method])})"
        components = {each.name: each for each in plan}
        for entry in component.inputs:
            stream = stream_of(components[entry.component], entry.stream) if entry.component in components else None
            missing = [] if stream is None else [field for field in cls.join.fields if field not in stream.fields]
            if missing:
                source = f"{entry.component}:{entry.stream}"
                yield f"{where} looks {source} up by [{', '.join(missing)}], which it does not have"

    def _ready_prepare(self, context: TopologyContext) -> None:
        """Likewise."""
        self.__cache = Cache(self.join.size, self.join.ttl, context.clock)
        self.__keys = {
            source: itemgetter(*map(fields.index, self.join.fields))
            for source, fields in context.this_input_fields.items()
        }

    def process_batch(self, rows: Sequence[Tuple]) -> None:
        """The engine's to call: rows of one stream."""
        key_of, keyed = self.__keys[rows[0].component, rows[0].stream], []
        for row in rows:
            try:
                keyed.append((row, as_key(key_of(row.values))))
            except EncodingError as error:
                self.__refuse(row, error)
        found = self.__found(dict.fromkeys(key for _, key in keyed))
        try:
            for self.__row, key in keyed:
                right = found[key]
                if right is not None or self.join.how == "left":
                    self.joined(self.__row, right)
        finally:
            self.__row = None

    def __refuse(self, row: Tuple, error: EncodingError) -> None:
        """It fails, and the others do not."""
        if not self.__refused:
            self.__refused = True
            self.logger.warning("%r fails, as each row without a key: %s", row, error.message)
        self.fail(row)

    def __found(self, keys: Mapping[Any, None]) -> dict[Any, Any]:
        """Of each of these keys, from the cache or from the author."""
        found = self.__cache.known(keys)
        if unknown := [key for key in keys if key not in found]:
            answer: Any = self.lookup(unknown)
            if not isinstance(answer, Mapping):
                what = type(answer).__name__
                raise UserError(
                    f"{type(self).__name__}.lookup(keys) returned {what}", hint="Return a dict: key -> what was found."
                )
            fresh = {key: answer.get(key) for key in unknown}
            self.__cache.keep(fresh)
            found.update(fresh)
        return found

    def __anchors(self, anchors: Sequence[Tuple] | None) -> Sequence[Tuple] | None:
        own = anchors is None and self.__row is not None and self.auto_anchor
        return [self.__row] if own and self.__row is not None else anchors
