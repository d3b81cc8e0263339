"""From the graph of operations to components: the names, the wiring, the number of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ardea.component import Component, GlobalStreamId, Spec, Stream
from ardea.errors import TopologyError
from ardea.grouping import Grouping
from ardea.plan import GroupingPlan
from ardea.trident.components import (
    BATCH,
    COMMIT,
    SUCCESS,
    Downstream,
    MasterBatchCoordinator,
    SpoutCoordinator,
    SpoutExecutor,
    SubtopologyBolt,
    Upstream,
    Wiring,
)
from ardea.trident.graph import Graph, Group, Node, PartitionNode, ProcessorNode, SpoutNode, merged
from ardea.trident.groupings import HEAD, Identity
from ardea.trident.state import StateFactory
from ardea.trident.store import MemoryStore

C = TypeVar("C", bound=Component)
FIRST = "$first"
IDENTITY = Grouping.custom(Identity)


@dataclass(eq=False, slots=True)
class _Part:
    """A group of nodes on its way to a component."""

    name: str
    group: Group
    hint: int
    inputs: dict[GlobalStreamId, GroupingPlan] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    exits: dict[Node, tuple[str, ...]] = field(default_factory=dict)
    entries: dict[tuple[str, str], tuple[str, tuple[ProcessorNode, ...]]] = field(default_factory=dict)
    readers: dict[str, list[_Part]] = field(default_factory=dict)  # by batch group
    sources: dict[str, list[_Part]] = field(default_factory=dict)

    @property
    def spout(self) -> SpoutNode | None:
        first = self.group.nodes[0]
        return first if isinstance(first, SpoutNode) else None

    def commits(self, batch_group: str, groups: Mapping[Node, str]) -> bool:
        """Whether it waits for the commit of that batch group."""
        return any(isinstance(n, ProcessorNode) and n.commits and groups[n] == batch_group for n in self.group.nodes)


def compile_graph(graph: Graph, states: Mapping[str, StateFactory]) -> list[Spec]:
    """The components of a graph."""
    return _Compilation(graph, states).specs()


class _Compilation:
    def __init__(self, graph: Graph, states: Mapping[str, StateFactory]) -> None:
        # The author may build twice: what is added here stays here.
        self._graph = Graph(list(graph.nodes))
        self._states = states
        self._memory = MemoryStore()
        self._groups = {node: f"bg{number}" for number, nodes in enumerate(self._graph.components()) for node in nodes}
        groups = merged(self._graph)
        spouts = [node for node in self._graph.nodes if isinstance(node, SpoutNode)]
        if not spouts:
            raise TopologyError(["the topology has no stream: call new_stream()"])
        self._parts = [_Part(f"spout-{node.txid}", Group([node]), 1) for node in spouts]
        for number, group in enumerate(groups):
            name = f"b-{number}-{group.name}" if group.name else f"b-{number}"
            self._parts.append(_Part(name, group, 1))
        self._where = {node: part for part in self._parts for node in part.group.nodes}
        self._streams = 0
        self._connect()
        self._decide_parallelism()

    # --- edges --------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Each repartition becomes a stream of the component before it, read by those behind it."""
        self._identical: list[tuple[_Part, _Part]] = []
        for node in list(self._graph.nodes):
            children = self._graph.children(node)
            if isinstance(node, PartitionNode):
                assert node.grouping is not None
                self._edge(node.parents[0], node.grouping, children, identical=node.identity)
                continue
            source = self._where[node]
            direct = [c for c in children if not isinstance(c, PartitionNode) and self._where[c] is not source]
            if direct:
                self._edge(node, IDENTITY, direct, identical=True)

    def _edge(self, source: Node, grouping: GroupingPlan, targets: list[Node], *, identical: bool) -> None:
        if not targets:
            return
        self._streams += 1
        stream, part, batch_group = f"s{self._streams}", self._where[source], self._groups[source]
        part.streams.append(Stream([*HEAD, *source.fields], stream))
        part.exits[source] = (*part.exits.get(source, ()), stream)
        by_part: dict[_Part, list[ProcessorNode]] = {}
        for target in targets:
            assert isinstance(target, ProcessorNode)
            by_part.setdefault(self._where[target], []).append(target)
        for reader, nodes in by_part.items():
            reader.inputs[GlobalStreamId(part.name, stream)] = grouping
            reader.entries[part.name, stream] = (batch_group, tuple(nodes))
            for table, other in ((part.readers, reader), (reader.sources, part)):
                known = table.setdefault(batch_group, [])
                if other not in known:
                    known.append(other)
            if identical:
                self._identical.append((part, reader))

    def _decide_parallelism(self) -> None:
        """Parts with an identity partition between them have equally many tasks: the most that one asks for.

        A spout among them may allow fewer.
        """
        together = {part: {part} for part in self._parts}
        for one, other in self._identical:
            both = together[one] | together[other]
            for part in both:
                together[part] = both
        for part, others in together.items():
            part.hint = max(other.group.hint for other in others)
            limits = [other.spout.spout.most_tasks for other in others if other.spout is not None]
            part.hint = min([part.hint, *(limit for limit in limits if limit is not None)])

    # --- components -----------------------------------------------------------------------------------------------

    def specs(self) -> list[Spec]:
        """All of them, spouts and coordinators first."""
        found: list[Spec] = []
        by_group: dict[str, list[SpoutNode]] = {}
        for part in self._parts:
            if part.spout is not None:
                by_group.setdefault(self._groups[part.spout], []).append(part.spout)
        for batch_group, spouts in by_group.items():
            found.append(self._master(batch_group, spouts))
        for part in self._parts:
            if part.spout is not None:
                found += self._spout(part, part.spout)
            else:
                found.append(self._bolt(part))
        return found

    def _master(self, batch_group: str, spouts: list[SpoutNode]) -> Spec:
        head = list(HEAD)
        body = {
            "outputs": [Stream([*head, FIRST], BATCH), Stream(head, COMMIT), Stream(head, SUCCESS)],
            "spouts": {node.txid: node.spout for node in spouts},
            "memory": self._memory,
        }
        return _subclass(MasterBatchCoordinator, body).spec(_master(batch_group))

    def _spout(self, part: _Part, node: SpoutNode) -> list[Spec]:
        master, coordinator = _master(self._groups[node]), f"$spoutcoord-{part.name}"
        common = {"stream": node.txid, "spout": node.spout, "memory": self._memory}
        body: dict[str, Any] = {**common, "outputs": [Stream([*HEAD, FIRST, "$metadata"], BATCH)]}
        inputs = {GlobalStreamId(master, name): Grouping.GLOBAL for name in (BATCH, SUCCESS)}
        before = _subclass(SpoutCoordinator, body).spec(coordinator, inputs=inputs)
        batch_group = self._groups[node]
        body = {
            **common,
            "group": batch_group,
            "data_streams": part.exits.get(node, ()),
            **self._reporting(part),
        }
        inputs = {GlobalStreamId(coordinator, BATCH): Grouping.ALL, GlobalStreamId(master, SUCCESS): Grouping.ALL}
        if node.spout.committing:
            inputs[GlobalStreamId(master, COMMIT)] = Grouping.ALL
        executor = _subclass(SpoutExecutor, body)
        return [before, executor.spec(part.name, part.hint, inputs=inputs)]

    def _bolt(self, part: _Part) -> Spec:
        nodes = tuple(node for node in part.group.nodes if isinstance(node, ProcessorNode))
        inputs = dict(part.inputs)
        reports: dict[tuple[str, str], str] = {}
        commits: dict[tuple[str, str], str] = {}
        upstream: dict[str, Upstream] = {}
        for batch_group, sources in part.sources.items():
            for source in sources:
                inputs[GlobalStreamId(source.name, _coord(batch_group))] = Grouping.DIRECT
                reports[source.name, _coord(batch_group)] = batch_group
            waits = part.commits(batch_group, self._groups)
            if waits:
                inputs[GlobalStreamId(_master(batch_group), COMMIT)] = Grouping.ALL
                commits[_master(batch_group), COMMIT] = batch_group
            late = [source for source in sources if self._is_late(source, batch_group)]
            early = [source for source in sources if source not in late]
            upstream[batch_group] = Upstream(_names(early), _names(late), waits)
        wiring = Wiring(
            nodes=nodes,
            groups={node: self._groups[node] for node in nodes},
            entries=part.entries,
            exits=part.exits,
            reports=reports,
            commits=commits,
            upstream=upstream,
            states={node.state: self._states[node.state] for node in nodes if node.state is not None},
        )
        body = {"wiring": wiring, **self._reporting(part)}
        return _subclass(SubtopologyBolt, body).spec(part.name, part.hint, inputs=inputs)

    def _reporting(self, part: _Part) -> dict[str, Any]:
        """Its streams, and who gets its reports."""
        downstream = {group: Downstream(_coord(group), _names(readers)) for group, readers in part.readers.items()}
        coords = [Stream([*HEAD, "$count"], way.stream, direct=True) for way in downstream.values()]
        return {"outputs": [*part.streams, *coords], "downstream": downstream}

    def _is_late(self, part: _Part, batch_group: str) -> bool:
        """Whether it reports in the commit phase: it commits, or something before it does."""
        if part.commits(batch_group, self._groups):
            return True
        return any(self._is_late(source, batch_group) for source in part.sources.get(batch_group, ()))


def _subclass(base: type[C], body: dict[str, Any]) -> type[C]:
    """A class for one component: the engine makes its objects without arguments."""
    return type(base.__name__, (base,), body)


def _names(parts: list[_Part]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)


def _master(batch_group: str) -> str:
    return f"$mastercoord-{batch_group}"


def _coord(batch_group: str) -> str:
    return f"$coord-{batch_group}"
