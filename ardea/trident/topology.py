"""A Trident topology: streams, and the ordinary topology that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ardea.errors import TopologyError
from ardea.plan import LogicalPlan
from ardea.topology import NOTHING, Topology
from ardea.trident.compiler import compile_graph
from ardea.trident.graph import Graph, ProcessorNode, SpoutNode
from ardea.trident.maps import SnapshottableMap
from ardea.trident.processors import Merge
from ardea.trident.spout import TridentSpout
from ardea.trident.state import MapState, Snapshottable, State, StateFactory
from ardea.trident.stream import Stream, TridentState
from ardea.trident.tuples import Fields, names_of

TRACKED: Mapping[str, Any] = {"topology.reliability.mode": "ATLEAST_ONCE", "topology.acker.executors": 1}
"""Batches are tracked, whatever a topology's author or submitter chose."""


class TridentTopology:
    """Streams of batches, and the states that they are committed to.

    Keep what :meth:`build` returns in a variable of the module; the command line finds it there.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.graph = Graph()
        self._states: dict[str, StateFactory] = {}
        self._config: dict[str, Any] = {}

    def new_stream(self, txid: str, spout: TridentSpout[Any]) -> Stream:
        """A stream of batches.

        Args:
            txid: names what is stored about its transactions: unique in the topology, the same after each submit.
            spout: where the batches come from.
        """
        if not isinstance(spout, TridentSpout):
            raise TopologyError([f"stream {txid!r}: {spout!r} is no TridentSpout object"])
        if any(isinstance(node, SpoutNode) and node.txid == txid for node in self.graph.nodes):
            raise TopologyError([f"there are two streams {txid!r}"])
        node = SpoutNode(self.graph.next_index, names_of(spout.outputs), (), None, None, txid, spout)
        self.graph.add(node)
        return Stream(self, node)

    def new_static_state(self, factory: StateFactory) -> TridentState:
        """A state that only :meth:`Stream.state_query` uses."""
        return TridentState(None, self.add_state(factory))

    def merge(self, streams: Sequence[Stream], fields: Fields | None = None) -> Stream:
        """One stream of all tuples, batch by batch, with the fields of the first stream or these."""
        if not streams:
            raise TopologyError(["merge() of no stream"])
        names = streams[0].fields if fields is None else names_of(fields)
        for stream in streams:
            if len(stream.fields) != len(names):
                raise TopologyError([f"merge(): {list(stream.fields)} do not fit {list(names)}"])
        # Each stream by a node of its own: the same one may come twice, and repartitions end before the merge.
        parents = tuple(stream.project(stream.fields)._node for stream in streams)
        node = ProcessorNode(self.graph.next_index, names, parents, streams[0]._name, None, Merge)
        self.graph.add(node)
        return Stream(self, node, streams[0]._name)

    def set_config(self, config: Mapping[str, Any]) -> None:
        """Adds to the topology's configuration; later calls win."""
        self._config.update(config)

    def add_state(self, factory: StateFactory, *, snapshot: bool = False) -> str:
        """Registers a state and names it; ``snapshot``: a map state is used as a single value."""
        if not isinstance(factory, StateFactory):
            raise TopologyError([f"{factory!r} is no StateFactory"])
        name = f"state{len(self._states) + 1}"
        self._states[name] = _SnapshotFactory(factory) if snapshot else factory
        return name

    def build(self) -> type[Topology]:
        """The ordinary topology: master coordinators, spouts, and groups of operations.

        Raises:
            TopologyError: a state is asked by streams that can't share its tasks, or nothing reads a stream.
        """
        specs = compile_graph(self.graph, self._states)
        body: dict[str, Any] = {f"component_{number}": spec for number, spec in enumerate(specs)}
        built = type(self.name, (_Compiled,), {"config": {"topology.name": self.name, **self._config}, **body})
        built.__module__ = Topology.__module__  # as what TopologyBuilder builds: the loader takes it for the author's
        return built

    def plan(self, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """The validated plan of the ordinary topology."""
        return self.build().plan(overrides)


class _Compiled(Topology):
    """Tracked in every mode."""

    config: ClassVar[Mapping[str, Any]] = NOTHING

    @classmethod
    def plan(cls, overrides: Mapping[str, Any] = NOTHING) -> LogicalPlan:
        """As for any topology."""
        return super().plan({**overrides, **TRACKED})


class _SnapshotFactory(StateFactory):
    """Uses a map state as a single value."""

    def __init__(self, factory: StateFactory) -> None:
        self._factory = factory

    def make_state(self, config: Mapping[str, Any], partition_index: int, num_partitions: int) -> State:
        """The factory's state, wrapped if it is a map."""
        state = self._factory.make_state(config, partition_index, num_partitions)
        if isinstance(state, MapState) and not isinstance(state, Snapshottable):
            return SnapshottableMap(state)
        return state
