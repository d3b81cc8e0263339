"""From the graph of operations to components: the names, the wiring, the number of tasks."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ardea.component import Component, GlobalStreamId, Spec, Stream
from ardea.config_check import check
from ardea.errors import TopologyError
from ardea.grouping import Grouping
from ardea.plan import GroupingPlan
from ardea.trident.components import Downstream, SpoutExecutor, SubtopologyBolt, Upstream, Wiring
from ardea.trident.coordinators import BATCH, COMMIT, SUCCESS, MasterBatchCoordinator, SpoutCoordinator
from ardea.trident.drpc import ASKER, DrpcSpout, ReturnResults, labelled
from ardea.trident.graph import DrpcNode, Graph, Group, Node, PartitionNode, ProcessorNode, SpoutNode, merged
from ardea.trident.groupings import HEAD, UNEQUAL, BatchGlobal, Identity
from ardea.trident.kinds import MapStateFactory
from ardea.trident.processors import Pass
from ardea.trident.state import StateFactory
from ardea.trident.store import MemoryStore

C = TypeVar("C", bound=Component)
FIRST, SKIPPED = "$first", "$skipped"
IDENTITY = Grouping.custom(Identity)
EXACT = {("transactional", "transactional"), ("transactional", "opaque"), ("opaque", "opaque")}
logger = logging.getLogger(__name__)


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
    straight: dict[GlobalStreamId, _Part] = field(default_factory=dict)  # what it reads without a repartition

    @property
    def spout(self) -> SpoutNode | None:
        first = self.group.nodes[0]
        return first if isinstance(first, SpoutNode) else None

    def commits(self, batch_group: str, groups: Mapping[Node, str]) -> bool:
        """Whether it waits for the commit of that batch group."""
        return any(isinstance(n, ProcessorNode) and n.commits and groups[n] == batch_group for n in self.group.nodes)


def compile_graph(graph: Graph, states: Mapping[str, StateFactory]) -> tuple[list[Spec], Mapping[str, Sequence[str]]]:
    """The components of a graph, and by component what is done in it."""
    compilation = _Compilation(graph, states)
    return compilation.specs(), compilation.operations()


class _Compilation:
    def __init__(self, graph: Graph, states: Mapping[str, StateFactory]) -> None:
        # The author may build twice: what is added here stays here.
        self._graph = Graph(list(graph.nodes))
        self._states = states
        self._memory = MemoryStore()
        for nodes in self._graph.components():
            self._answer(nodes)
        self._groups = {node: f"bg{number}" for number, nodes in enumerate(self._graph.components()) for node in nodes}
        self._warn()
        groups = merged(self._graph)
        self._parts = [_Part(f"spout-{n.txid}", Group([n]), 1) for n in self._graph.nodes if isinstance(n, SpoutNode)]
        asked = [node for node in self._graph.nodes if isinstance(node, DrpcNode)]
        self._parts += [_Part(f"spout-{n.place.function}{i}", Group([n]), 1) for i, n in enumerate(asked)]
        self._asked_by = {self._groups[node]: node.place for node in asked}
        if not self._parts:
            raise TopologyError(["the topology has no stream: call new_stream()"])
        for number, group in enumerate(groups):
            name = f"b-{number}-{group.name}" if group.name else f"b-{number}"
            self._parts.append(_Part(name, group, 1))
        self._where = {node: part for part in self._parts for node in part.group.nodes}
        self._streams = 0
        self._connect()
        self._decide_parallelism()

    def _answer(self, nodes: list[Node]) -> None:
        """Sends what the last node of a DRPC stream gives to who asked."""
        asked = next((node for node in nodes if isinstance(node, DrpcNode)), None)
        if asked is None:
            return
        if any(isinstance(node, SpoutNode | DrpcNode) and node is not asked for node in nodes):
            raise TopologyError(["Cannot join DRPC stream with streams originating from other spouts"])
        if any(isinstance(node, ProcessorNode) and node.commits for node in nodes):
            raise TopologyError([f"DRPC stream {asked.place.function} updates a state: requests are no transactions"])
        ends = []
        for last in (nodes[-1], asked.answers):
            assert last is not None
            end = last
            if isinstance(end, PartitionNode):
                end = ProcessorNode(self._graph.next_index, end.fields, (end,), None, None, "pass", Pass)
                self._graph.add(end)
            index = self._graph.next_index
            apart = PartitionNode(index, end.fields, (end,), None, None, "", Grouping.custom(BatchGlobal))
            ends.append(ProcessorNode(index + 1, end.fields, (apart,), None, None, "pass", Pass))
            self._graph.nodes += [apart, ends[-1]]
        place = asked.place
        label = f"answer {place.function}"
        make = lambda: ReturnResults(place)  # noqa: E731
        self._graph.add(ProcessorNode(self._graph.next_index, (), tuple(ends), None, None, label, make))

    def _warn(self) -> None:
        """Names the pairs of stream and state that do not count each tuple once."""
        for spout in [node for node in self._graph.nodes if isinstance(node, SpoutNode)]:
            for node in self._graph.nodes:
                if isinstance(node, ProcessorNode) and node.commits and self._groups[node] == self._groups[spout]:
                    pair = spout.spout.kind, self._states[node.state or ""].kind
                    if None not in pair and pair not in EXACT:
                        message = (
                            "stream %s (%s) into %s (%s) is not exactly once: a batch that comes again may count again"
                        )
                        logger.warning(message, spout.txid, pair[0], node.state, pair[1])

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
                self._edge(node, None, direct, identical=True)

    def _edge(self, source: Node, grouping: GroupingPlan | None, targets: list[Node], *, identical: bool) -> None:
        """``grouping`` None: the author repartitioned nothing here, so that tuples need not change their tasks."""
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
            reader.inputs[GlobalStreamId(part.name, stream)] = grouping or IDENTITY
            reader.entries[part.name, stream] = (batch_group, tuple(nodes))
            for table, other in ((part.readers, reader), (reader.sources, part)):
                known = table.setdefault(batch_group, [])
                if other not in known:
                    known.append(other)
            if grouping is None:
                reader.straight[GlobalStreamId(part.name, stream)] = part
            elif identical:
                self._identical.append((part, reader))

    def _decide_parallelism(self) -> None:
        """Parts with an identity partition between them have equally many tasks: the most that one asks for.

        So have a part and the only one that it reads without a repartition.  Where such ones merge, each keeps its
        number, and tuples change their tasks if the numbers differ.  A spout may allow fewer tasks, a state its own
        number only.
        """
        together = {part: {part} for part in self._parts}
        alone = [(*set(part.straight.values()), part) for part in self._parts if len(set(part.straight.values())) == 1]
        for one, other in (*self._identical, *alone):
            both = together[one] | together[other]
            for part in both:
                together[part] = both
        hints: dict[_Part, int] = {}

        def hint(part: _Part) -> int:
            if part not in hints:
                parts = together[part]
                asked = [each.group.hint for each in parts if each.group.hint is not None]
                hints.update(dict.fromkeys(parts, 1))  # while the sources are asked
                sources = {source for each in parts for source in each.straight.values()} - parts
                found = max(asked or [hint(source) for source in sources], default=1)
                spouts = [each.spout.spout for each in parts if each.spout is not None]
                limits = [limit for spout in spouts for limit in (spout.most_tasks, _limit(spout.config)) if limit]
                hints.update(dict.fromkeys(parts, min([found, *limits])))
            return hints[part]

        for part in sorted(self._parts, key=lambda part: part.group.nodes[0].index):
            part.hint = self._allowed(part, hint(part))
        if unequal := [(one, other) for one, other in self._identical if one.hint != other.hint]:
            raise TopologyError(
                [
                    f"{UNEQUAL}: {one.name} has {one.hint}, its reader {other.name} {other.hint}"
                    for one, other in unequal
                ],
                hint="a state with `partitions` of its own keeps their number: give the other side as many tasks",
            )
        for part in self._parts:
            for stream, source in part.straight.items():
                if source.hint != part.hint:
                    part.inputs[stream] = Grouping.LOCAL_OR_SHUFFLE

    def _allowed(self, part: _Part, hint: int) -> int:
        """What the states of a part allow."""
        names = {node.state for node in part.group.nodes if isinstance(node, ProcessorNode) and node.state is not None}
        wanted = {count for name in names if (count := self._states[name].partitions) is not None}
        if len(wanted) > 1 or (wanted and part.group.hint not in (None, *wanted)):
            counts = sorted({*wanted, *([part.group.hint] if part.group.hint is not None else [])})
            raise TopologyError([f"{part.name} is to have {' and '.join(map(str, counts))} partitions at once"])
        return wanted.pop() if wanted else hint

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
            first = part.group.nodes[0]
            if isinstance(first, SpoutNode):
                found += self._spout(part, first)
            elif isinstance(first, DrpcNode):
                found.append(self._asked(part, first))
            else:
                found.append(self._bolt(part))
        return found

    def _master(self, batch_group: str, spouts: list[SpoutNode]) -> Spec:
        head = list(HEAD)
        body = {
            "outputs": [Stream([*head, FIRST, SKIPPED], BATCH), Stream(head, COMMIT), Stream(head, SUCCESS)],
            "spouts": {node.txid: node.spout for node in spouts},
            "memory": self._memory,
        }
        return _subclass(MasterBatchCoordinator, body).spec(_master(batch_group))

    def _spout(self, part: _Part, node: SpoutNode) -> list[Spec]:
        master, coordinator = _master(self._groups[node]), f"$spoutcoord-{part.name}"
        common = {"stream": node.txid, "spout": node.spout, "memory": self._memory}
        body: dict[str, Any] = {**common, "outputs": [Stream([*HEAD, FIRST, SKIPPED, "$metadata"], BATCH)]}
        inputs = {GlobalStreamId(master, name): Grouping.GLOBAL for name in (BATCH, SUCCESS)}
        before = _subclass(SpoutCoordinator, body).spec(coordinator, inputs=inputs, **part.group.resources)
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
        needs = part.group.resources
        specs = [before, executor.spec(part.name, part.hint, inputs=inputs, config=node.spout.config, **needs)]
        if node.spout.companion is not None:
            driver_inputs = {GlobalStreamId(master, SUCCESS): Grouping.GLOBAL}
            specs.append(node.spout.companion.spec(f"{part.name}_driver", inputs=driver_inputs))
        return specs

    def _asked(self, part: _Part, node: DrpcNode) -> Spec:
        body = self._reporting(part)
        (way,) = body.pop("downstream").values()
        body |= {"place": node.place, "report_stream": way.stream, "readers": way.components}
        return _subclass(DrpcSpout, {**body, "data_streams": part.exits[node]}).spec(
            part.name, config=labelled(node.place.function), **part.group.resources
        )

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
            asked={group: self._asked_by[group] for group in part.sources if group in self._asked_by},
        )
        body = {"wiring": wiring, "rescalable": self._follows_keys(nodes), **self._reporting(part)}
        return _subclass(SubtopologyBolt, body).spec(part.name, part.hint, inputs=inputs, **part.group.resources)

    def _follows_keys(self, nodes: Sequence[ProcessorNode]) -> bool:
        """Whether what they have stored is found again whatever the number of tasks, as far as that is known."""
        writers = [node for node in nodes if node.state is not None and node.commits]
        kept = all(isinstance(self._states[str(node.state)], MapStateFactory) for node in writers)
        return kept and not any(node.by_partition for node in writers)

    def _reporting(self, part: _Part) -> dict[str, Any]:
        """Its streams, and who gets its reports."""
        downstream = {group: Downstream(_coord(group), _names(readers)) for group, readers in part.readers.items()}
        coords = [
            Stream([*HEAD, "$count", *([ASKER] if group in self._asked_by else [])], way.stream, direct=True)
            for group, way in downstream.items()
        ]
        return {"outputs": [*part.streams, *coords], "downstream": downstream}

    def operations(self) -> Mapping[str, Sequence[str]]:
        """By component, what is done in it, in order."""
        return {part.name: [node.label for node in part.group.nodes if node.label != "pass"] for part in self._parts}

    def _is_late(self, part: _Part, batch_group: str) -> bool:
        """Whether it reports in the commit phase: it commits, or something before it does."""
        if part.commits(batch_group, self._groups):
            return True
        return any(self._is_late(source, batch_group) for source in part.sources.get(batch_group, ()))


def _subclass(base: type[C], body: dict[str, Any]) -> type[C]:
    """A class for one component: the engine makes its objects without arguments.

    What its tasks take of a batch, and whose reports they wait for, they decided by the numbers of tasks there were:
    these change only when all start again, and then no state is left behind unless ``body`` says so.
    """
    return type(base.__name__, (base,), {"fixed_parallelism": True, "rescalable": True, **body})


def _limit(config: Mapping[str, Any]) -> int | None:
    """What a spout's own configuration allows; a value that is none, the engine reports."""
    return check(config, "", component=True)[0].get("topology.max.task.parallelism")


def _names(parts: list[_Part]) -> tuple[str, ...]:
    return tuple(part.name for part in parts)


def _master(batch_group: str) -> str:
    return f"$mastercoord-{batch_group}"


def _coord(batch_group: str) -> str:
    return f"$coord-{batch_group}"
