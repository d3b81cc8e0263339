"""A Trident topology: streams, and the ordinary topology that they become."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ardea.component import Spout
from ardea.drpc import LocalDrpc
from ardea.errors import TopologyError, without_key
from ardea.plan import LogicalPlan
from ardea.topology import NOTHING, Topology
from ardea.trident.compiler import compile_graph
from ardea.trident.drpc import ARGS, RETURN, DrpcAddress
from ardea.trident.graph import DrpcNode, Graph, ProcessorNode, SpoutNode
from ardea.trident.joins import Joiner, JoinFields, JoinType, MultiReduce
from ardea.trident.maps import SnapshottableMap
from ardea.trident.operations import GroupedMultiReducer, MultiReducer
from ardea.trident.plain import PlainSpout
from ardea.trident.processors import Pass, Processor, Project
from ardea.trident.spout import TridentSpout
from ardea.trident.state import MapState, Snapshottable, State, StateFactory
from ardea.trident.stream import GroupedStream, Stream
from ardea.trident.trident_state import TridentState
from ardea.trident.tuples import Fields, names_of, projection, select

TRACKED: Mapping[str, Any] = {"topology.reliability.mode": "ATLEAST_ONCE", "topology.acker.executors": 1}
"""Batches are tracked, whatever a topology's author or submitter chose."""
ROWS_AT_ONCE = 10_000
"""More than the engine's default: rows wait for the end of their batch anyway."""


class TridentTopology:
    """Streams of batches, and the states that they are committed to.

    Keep what :meth:`build` returns in a variable of the module; the command line finds it there.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph()
        self._states: dict[str, StateFactory] = {}
        self._config: dict[str, Any] = {}

    def new_stream(self, txid: str, spout: TridentSpout[Any] | type[Spout]) -> Stream:
        """A stream of batches.

        Args:
            txid: names what is stored about its transactions: unique in the topology, the same after each submit.
            spout: where the batches come from; the class of an ordinary spout is not transactional.
        """
        if isinstance(spout, type) and issubclass(spout, Spout):
            spout = PlainSpout(spout)
        if not isinstance(spout, TridentSpout):
            raise TopologyError([f"stream {txid!r}: {spout!r} is no TridentSpout object"])
        if any(isinstance(node, SpoutNode) and node.txid == txid for node in self.graph.nodes):
            raise TopologyError([f"there are two streams {txid!r}"])
        node = SpoutNode(
            self.graph.next_index, names_of(spout.outputs), (), None, None, f"{type(spout).__name__}", txid, spout
        )
        self.graph.add(node)
        return Stream(self, node)

    def new_drpc_stream(
        self, function: str, local: LocalDrpc | None = None, *, host: str = "127.0.0.1", port: int = 0
    ) -> Stream:
        """A stream whose batches are requests, one each, with the field ``args``; its last operation gives the answer.

        Args:
            function: its name, unique in the topology, without a slash.
            local: the way to ask it in ``ardea.testing``; None: it is served over HTTP (docs/drpc.md).
            host: the interface; ``0.0.0.0`` for all.
            port: 0: a free one, which the log and the state manager name.
        """
        nodes = [node for node in self.graph.nodes if isinstance(node, DrpcNode)]
        if any(node.place.function == function for node in nodes):
            raise TopologyError([f"there are two DRPC streams {function!r}"])
        if not function or "/" in function:
            raise TopologyError([f"new_drpc_stream() takes a name without a slash, not {function!r}"])
        fields = (ARGS, RETURN)
        place = DrpcAddress(function, local, host, port)
        source = DrpcNode(self.graph.next_index, fields, (), None, None, f"requests of {function}", place)
        self.graph.add(source)
        stream = Stream(self, source)
        source.answers = stream._then((RETURN,), lambda: Project(projection(fields, (RETURN,))), "who asks")._node
        return stream.project(ARGS)

    def new_static_state(self, factory: StateFactory) -> TridentState:
        """A state that only :meth:`Stream.state_query` uses; another topology may write it meanwhile."""
        return TridentState(None, self.add_state(factory, asked=True))

    def merge(self, streams: Sequence[Stream], fields: Fields | None = None) -> Stream:
        """One stream of all tuples, batch by batch, with the fields of the first stream or these."""
        if not streams:
            raise TopologyError(["merge() of no stream"])
        names = streams[0].fields if fields is None else names_of(fields)
        for stream in streams:
            if len(stream.fields) != len(names):
                raise TopologyError([f"merge(): {list(stream.fields)} do not fit {list(names)}"])
        return self._meeting(streams, names, Pass, "merge")

    def multi_reduce(
        self,
        streams: Sequence[Stream] | Sequence[GroupedStream],
        reducer: MultiReducer | GroupedMultiReducer,
        outputs: Fields,
        inputs: Sequence[Fields] | None = None,
    ) -> Stream:
        """What a reducer makes of several streams, batch by batch.

        Args:
            streams: all plain, for a :class:`MultiReducer`, which works where their tuples are; or all grouped, for a
                :class:`GroupedMultiReducer`: equal keys meet.
            reducer: the author's.
            outputs: the fields that it emits.
            inputs: the fields that it sees of each stream; by default all.
        """
        if not streams:
            raise TopologyError(["multi_reduce() of no stream"])
        plain = [stream for stream in streams if isinstance(stream, Stream)]
        grouped = [stream for stream in streams if isinstance(stream, GroupedStream)]
        if not (isinstance(reducer, MultiReducer) and not grouped) and not (
            isinstance(reducer, GroupedMultiReducer) and not plain
        ):
            raise TopologyError(
                ["multi_reduce() takes plain streams and a MultiReducer, or grouped ones and a GroupedMultiReducer"]
            )
        _check_keys(grouped)
        seen = [None] * len(streams) if inputs is None else list(inputs)
        if len(seen) != len(streams):
            raise TopologyError([f"multi_reduce() of {len(streams)} streams has inputs for {len(seen)}"])
        names, key_views = names_of(outputs), None
        if grouped:
            plain = [stream.to_stream().partition_by(stream.group_fields) for stream in grouped]
            key_views = [projection(s.fields, g.group_fields) for s, g in zip(plain, grouped, strict=True)]
        views = [
            projection(stream.fields, select(stream.fields, wanted)) for stream, wanted in zip(plain, seen, strict=True)
        ]
        return self._meeting(
            plain,
            names,
            lambda: MultiReduce(copy.deepcopy(reducer), views, len(names), key_views),
            type(reducer).__name__,
        )

    def join(
        self,
        streams: Sequence[Stream],
        keys: Sequence[Fields],
        outputs: Fields,
        types: JoinType | Sequence[JoinType] = JoinType.INNER,
        fields: JoinFields = JoinFields.COMPACT,
    ) -> Stream:
        """The combinations of tuples with equal keys, within a batch.

        Args:
            streams: two or more.
            keys: the fields that are compared, for each stream, in step.
            outputs: as many names as ``fields`` asks for.
            types: for each stream, or for all, what becomes of a key that the stream does not have.
            fields: which fields there are.
        """
        if len(streams) < 2 or len(keys) != len(streams):
            raise TopologyError([f"join() of {len(streams)} streams by {len(keys)} keys: give two or more of each"])
        each = [types] * len(streams) if isinstance(types, JoinType) else list(types)
        if len(each) != len(streams):
            raise TopologyError([f"join() of {len(streams)} streams has {len(each)} types"])
        grouped = [stream.group_by(key) for stream, key in zip(streams, keys, strict=True)]
        _check_keys(grouped)
        rest = [
            tuple(name for name in stream.fields if name not in group.group_fields)
            for stream, group in zip(streams, grouped, strict=True)
        ]
        widths, places = [len(names) for names in rest], None
        if fields is JoinFields.PRESERVE:
            places = [
                [[*group.group_fields, *others].index(name) for name in stream.fields]
                for stream, group, others in zip(streams, grouped, rest, strict=True)
            ]
        needed = sum(map(len, places)) if places is not None else len(grouped[0].group_fields) + sum(widths)
        names = names_of(outputs)
        if len(names) != needed:
            raise TopologyError([f"join() gives {needed} fields, and the names for them are {list(names)}"])
        return self.multi_reduce(grouped, Joiner(each, widths, places), names, rest)

    def _meeting(
        self, streams: Sequence[Stream], fields: tuple[str, ...], make: Callable[[], Processor], label: str
    ) -> Stream:
        # Each stream by a node of its own, without a name: the same one may come twice, and repartitions end before it.
        entries = [Stream(self, stream._node, None) for stream in streams]
        parents = tuple(entry._then(entry.fields, Pass, "pass")._node for entry in entries)
        name = "-".join(stream._name for stream in streams if stream._name is not None) or None
        node = ProcessorNode(self.graph.next_index, fields, parents, name, None, label, make)
        self.graph.add(node)
        return Stream(self, node, name)

    def set_config(self, config: Mapping[str, Any]) -> None:
        """Adds to the topology's configuration; later calls win."""
        self._config.update(config)

    def add_state(self, factory: StateFactory, *, snapshot: bool = False, asked: bool = False) -> str:
        """Registers a state and names it; ``snapshot``: a map is used as one value; ``asked``: nobody writes it."""
        if not isinstance(factory, StateFactory):
            raise TopologyError([f"{factory!r} is no StateFactory"])
        if factory.place is not None and not asked:
            self._check_place(factory.place)
        name = f"state{len(self._states) + 1}"
        made = _SnapshotFactory(factory) if snapshot else factory
        self._states[name] = _AskedFactory(made) if asked else made
        return name

    def _check_place(self, place: str) -> None:
        if place in [state.place for state in self._states.values()]:
            problem = f"two states are written to {without_key(place)}, which has one writer: no batch would commit"
            hint = "give each its own; to ask one state twice, use what its persistent_aggregate() returned"
            raise TopologyError([problem], hint=hint)

    def build(self) -> type[Topology]:
        """The ordinary topology: master coordinators, spouts, and groups of operations.

        Raises:
            TopologyError: a state is asked by streams that can't share its tasks, or nothing reads a stream.
        """
        specs, operations = compile_graph(self.graph, self._states)
        body: dict[str, Any] = {f"component_{number}": spec for number, spec in enumerate(specs)}
        body["operations"] = operations
        config = {"topology.name": self.name, "topology.executor.batch.rows": ROWS_AT_ONCE, **self._config}
        built = type(self.name, (_Compiled,), {"config": config, **body})
        built.__module__ = Topology.__module__  # as what TopologyBuilder builds: the loader takes it for the author's
        return built

    def plan(self, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """The validated plan of the ordinary topology."""
        return self.build().plan(overrides)


def _check_keys(grouped: Sequence[GroupedStream]) -> None:
    if len({len(stream.group_fields) for stream in grouped}) > 1:
        keys = ", ".join(str(list(stream.group_fields)) for stream in grouped)
        raise TopologyError([f"the keys of the streams have different numbers of fields: {keys}"])


class _Compiled(Topology):
    """Tracked in every mode.  ``operations`` are those of each component, for who draws the plan."""

    operations: ClassVar[Mapping[str, Sequence[str]]] = NOTHING
    config: ClassVar[Mapping[str, Any]] = NOTHING

    @classmethod
    def plan(cls, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """As for any topology.

        Raises:
            TopologyError: also where the mode takes snapshots.
        """
        if {**cls.config, **overrides}.get("topology.reliability.mode") == "EFFECTIVELY_ONCE":
            raise TopologyError(
                [f"topology {cls.__name__!r} is Trident's, which lives on acks, and EFFECTIVELY_ONCE has none"],
                hint="leave topology.reliability.mode out: Trident commits each batch exactly once by itself",
            )
        return super().plan({**overrides, **TRACKED})


class _SnapshotFactory(StateFactory):
    """Uses a map state as a single value."""

    def __init__(self, factory: StateFactory) -> None:
        self._factory = factory
        self.partitions, self.kind, self.place = factory.partitions, factory.kind, factory.place

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> State:
        """The factory's state, wrapped if it is a map."""
        state = self._factory.make_state(config, partition_index, num_partitions)
        if isinstance(state, MapState) and not isinstance(state, Snapshottable):
            return SnapshottableMap(state)
        return state


class _AskedFactory(StateFactory):
    """Makes states that are only asked."""

    def __init__(self, factory: StateFactory) -> None:
        self._factory = factory
        self.partitions, self.kind = factory.partitions, factory.kind

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> State:
        """The factory's reader."""
        return self._factory.make_reader(config, partition_index, num_partitions)
