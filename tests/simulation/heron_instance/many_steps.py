"""A component that does the steps of a test by ``emit_many`` or by a loop of emits, and all that can be seen of it."""

from __future__ import annotations

import itertools
import logging
from collections import Counter

from ardea import Bolt, CustomStreamGrouping, Grouping, Spout, Stream, TaskHook, Topology
from ardea.errors import UserError
from ardea.protocol.wire_pb2 import ACKS, INIT, ROWS
from ardea.testing import CollectBolt, RowsSpout
from tests.unit.heron_instance.bench import Bench

FIELDS = ["n", "word"]
SOURCE = RowsSpout.of(["n"], []).spec("source")


class ByWord(CustomStreamGrouping):
    """To one task, to two, to one twice, or to nobody."""

    def prepare(self, context, component, stream, target_tasks):
        self.targets = target_tasks

    def choose_tasks(self, values):
        chosen = {"a": self.targets[:1], "b": list(self.targets), "c": [self.targets[0]] * 2}
        return chosen.get(str(values[1]), [])  # a value may be one that cannot be a key


class Refuses(ByWord):
    def choose_tasks(self, values):
        return [-1] if values[0] == 7 else super().choose_tasks(values)


class Told(TaskHook):
    def __init__(self):
        self.rows = []

    def emit(self, info):
        self.rows.append((info.values, info.stream, tuple(info.out_tasks)))


GROUPINGS = {
    "shuffle": Grouping.SHUFFLE,
    "fields": Grouping.fields("word"),
    "partial key": Grouping.partial_key("n"),
    "all": Grouping.ALL,
    "global": Grouping.GLOBAL,
    "local": Grouping.LOCAL_OR_SHUFFLE,
    "load aware": Grouping.LOAD_AWARE,
    "custom": Grouping.custom(ByWord),
    "custom that raises": Grouping.custom(Refuses),
}


class ReadError(Exception):
    """What an iterator raises in the middle."""


def iterable(step, component):
    """As the step says: what is read, and what happens while it is."""
    kind, rows = step["kind"], step["rows"]
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(rows)
    if kind == "zip":
        return zip((row[0] for row in rows), (row[1] for row in rows), strict=True)
    if kind == "items":
        return {row[0]: row[1] for row in rows}.items()
    return generator(step, component)


def generator(step, component):
    """May use one list for all of its rows, emit, take long, and raise."""
    shared = []
    for place, row in enumerate(step["rows"]):
        if step["at"] == place:
            if step["event"] == "raises":
                raise ReadError
            if step["event"] == "emits":
                component.emit((place, "inner"))
            if step["event"] == "long":
                component.bench.passes(1.0)
        if isinstance(row, list):
            shared[:] = row
            yield shared
        else:
            yield row


class Script:
    """Does the steps of a test, by ``emit_many`` or by a loop; ``told`` is what came of each."""

    steps: list = []
    many = False
    hooked = False

    def initialize(self, config, context):
        self.told, self.hook, self.held = [], Told(), []
        self.tasks = context.component_tasks("first")
        if self.hooked:
            context.add_task_hook(self.hook)

    def do(self):
        for number, step in enumerate(self.steps):
            try:
                self.told.append(self.step(step, number))
            except (UserError, ReadError) as error:
                self.told.append((type(error), str(error).partition("; rows[")[0]))

    def step(self, step, number):
        rows, needs = iterable(step, self), step["needs"]
        options = self.options(step)
        ids = self.ids(step, number)
        if self.many:
            some = {} if ids is None else {"tup_ids": ids}
            counts = self.emit_many(rows, **some, **options, need_task_counts=needs)
            return None if counts is None else dict(counts)
        counts, next_id = Counter(), None if ids is None else iter(ids)
        for row in rows:
            some = {} if next_id is None else {"tup_id": next(next_id)}
            counts.update(self.emit(row, **some, **options, need_task_ids=needs) or ())
        return dict(counts) if needs else None

    def options(self, step):
        options = {} if step["stream"] == "default" else {"stream": step["stream"]}
        if step["stream"] == "direct" and step["direct"] is not None:
            options["direct_task"] = self.tasks[0] if step["direct"] else 1000
        return options

    def ids(self, step, number):
        return None


class BoltScript(Script, Bolt):
    def process(self, tup):
        self.held.append(tup)
        self.do()

    def options(self, step):
        held = {"none": None, "empty": [], "first": self.held[:1], "last": self.held[-1:], "all": self.held}
        anchors = held[step["anchors"]]
        return super().options(step) | ({} if anchors is None else {"anchors": anchors})


class Holds(BoltScript):
    auto_ack = auto_anchor = False


class BatchScript(BoltScript):
    def process_batch(self, rows):
        self.held += rows
        self.do()


class ColumnScript(BoltScript):
    def process_columns(self, columns):
        self.do()


class SpoutScript(Script, Spout):
    def next_tuple(self):
        self.do()
        self.finish()

    def ids(self, step, number):
        total = len({row[0] for row in step["rows"]} if step["kind"] == "items" else step["rows"])
        some = [None if n % 3 == 1 else (number, n) for n in range(total)]
        kinds = {"none": None, "list": some, "range": range(total), "count": itertools.count(), "generator": iter(some)}
        return kinds[step["ids"]]


def bench(script, steps, groupings, *, many, single, hooked=False, **config):
    streams = ["default"] if single else ["default", "other", "direct"]
    outputs = [Stream(FIELDS, name, direct=name == "direct") for name in streams]
    cls = type("Made", (script,), {"outputs": outputs, "steps": steps, "many": many, "hooked": hooked})
    made = cls.spec("made") if issubclass(script, Spout) else cls.spec("made", inputs=[SOURCE])
    first = {made[name]: GROUPINGS[chosen] for name, chosen in zip(streams, groupings, strict=False)}
    if not single:
        first[made["direct"]] = Grouping.DIRECT
    parts = {
        "made": made,
        "first": CollectBolt.spec("first", par=3, inputs=first),
        "second": CollectBolt.spec("second", par=2, inputs={made: GROUPINGS[groupings[2]]}),
    }
    if not issubclass(script, Spout):
        parts["source"] = SOURCE
    source = None if issubclass(script, Spout) else "source"
    return Bench(type("Line", (Topology,), parts), "made", source, **config)


def outcome(script, steps, groupings, caplog, *, exact, **options):
    """All that can be seen of the task: what has left, what the author was told, and the log."""
    caplog.clear()
    made = bench(script, steps, groupings, **options)
    raised = None
    try:
        if not issubclass(script, Spout):
            made.arrives([(1,), (2,), (3,)])
            made.turn()
            made.arrives([(4,)])
        made.turn()
        for _ in range(3):
            made.now += 1.0
            made.turn()
    except UserError as error:
        raised = str(error).partition("; rows[")[0]
    if exact:
        data = [m for m in made.output.messages if m.header.kind in (ROWS, INIT, ACKS)]
        left = [(m.header.SerializeToString(), m.frames) for m in data]
    else:  # tasks chosen together leave in another order
        left = Counter(
            (m.header.target, row) for m in made.output.messages if m.header.kind == ROWS
            for row in map(repr, made.codec.decode(m.frames[0]))
        )  # fmt: skip
    log = [record.getMessage().partition("; rows[")[0].partition(" (")[0] for record in caplog.records]
    totals = made.executor.reporter.given_up, made.executor.runner.open_rows, made.executor.task_output.emitted
    return left, made.component.told, made.component.hook.rows, log, totals, raised


def of(**step):
    """One step; what it does not say is the plainest."""
    plain = {"kind": "list", "stream": "default", "rows": [], "event": "", "at": 0}
    return plain | {"anchors": "none", "ids": "none", "direct": None, "needs": False} | step


class Log(logging.Handler):
    """What the component logs; hypothesis does not go with fixtures of a function."""

    def __init__(self):
        super().__init__()
        self.records = []

    def clear(self):
        self.records.clear()

    def emit(self, record):
        self.records.append(record)

    def __enter__(self):
        self.logger = logging.getLogger("made")
        self.logger.addHandler(self)
        self.before, self.logger.propagate = self.logger.propagate, False
        return self

    def __exit__(self, *_):
        self.logger.removeHandler(self)
        self.logger.propagate = self.before
