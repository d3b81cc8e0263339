"""The graph of an author's operations, and how it is cut into groups: a group becomes a component.

Everything is ordered by the creation of the nodes, so that every process cuts it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ardea.plan import GroupingPlan


@dataclass(eq=False, slots=True)
class Node:
    """One operation.  ``index`` counts the creations; ``fields`` are what comes out; ``label`` says what it does.

    ``cpu`` and ``ram``: what a task needs for it, if that is said.
    """

    index: int
    fields: tuple[str, ...]
    parents: tuple[Node, ...] = ()
    name: str | None = None
    hint: int | None = None
    label: str = ""
    cpu: float | None = field(default=None, kw_only=True)
    ram: int | None = field(default=None, kw_only=True)


@dataclass(eq=False, slots=True)
class SpoutNode(Node):
    """Where batches come from.  ``txid`` names the stream and what is stored about it."""

    txid: str = ""
    spout: Any = None


@dataclass(eq=False, slots=True)
class DrpcNode(Node):
    """Where requests come from; ``place`` says where they come in, ``answers`` is what knows where they go."""

    place: Any = None
    answers: Node | None = None


@dataclass(eq=False, slots=True)
class PartitionNode(Node):
    """Tuples change tasks here; ``identity``: from each task to the one with the same index."""

    grouping: GroupingPlan | None = None
    identity: bool = False


@dataclass(eq=False, slots=True)
class ProcessorNode(Node):
    """What is done to tuples; ``make`` gives a fresh processor for a task.

    ``state`` names the state it needs, ``commits`` says that it writes to it, in the commit phase, ``by_partition``
    that it writes what no other number of partitions would find.
    """

    make: Callable[[], Any] | None = None
    state: str | None = None
    commits: bool = False
    by_partition: bool = False


@dataclass(eq=False, slots=True)
class Group:
    """Nodes that run in one component, by creation."""

    nodes: list[Node]

    @property
    def hint(self) -> int | None:
        """The parallelism that its nodes ask for, if any does."""
        return max((node.hint for node in self.nodes if node.hint is not None), default=None)

    @property
    def resources(self) -> dict[str, Any]:
        """What one of its tasks needs: of each kind the sum, None where no node says anything."""
        cpu = [node.cpu for node in self.nodes if node.cpu is not None]
        ram = [node.ram for node in self.nodes if node.ram is not None]
        return {"cpu": sum(cpu) or None, "ram": sum(ram) or None}

    @property
    def name(self) -> str:
        """The names of the nodes, by creation, joined by dashes; neighbours of one name count once."""
        names: list[str] = []
        for node in self.nodes:
            if node.name is not None and names[-1:] != [node.name]:
                names.append(node.name)
        return "-".join(names)


@dataclass(slots=True)
class Graph:
    """All nodes, by creation."""

    nodes: list[Node] = field(default_factory=list)

    def add(self, node: Node) -> None:
        """A new node, behind its parents."""
        self.nodes.append(node)

    @property
    def next_index(self) -> int:
        """The index of the next node."""
        return len(self.nodes)

    def children(self, node: Node) -> list[Node]:
        """The nodes that read it, by creation."""
        return [child for child in self.nodes if node in child.parents]

    def components(self) -> list[list[Node]]:
        """The connected parts, by their first nodes: each has batches of its own."""
        part: dict[Node, Node] = {}

        def root(node: Node) -> Node:
            while part[node] is not node:
                node = part[node]
            return node

        for node in self.nodes:
            part[node] = node
            for parent in node.parents:
                first, second = sorted((root(parent), root(node)), key=lambda n: n.index)
                part[second] = first
        found: dict[Node, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(root(node), []).append(node)
        return [found[first] for first in sorted(found, key=lambda n: n.index)]


def merged(graph: Graph) -> list[Group]:
    """The groups of processors: nodes of one state together, then whatever has no repartition in between.

    A group with exactly one neighbour behind it (else: in front of it) is merged with that one, the merged group going
    to the end of the list, until nothing changes: Storm's rule, which decides the numbers of the components.
    """
    groups: list[Group] = []
    by_state: dict[str, Group] = {}
    for node in graph.nodes:
        if isinstance(node, ProcessorNode) and node.state is not None:
            if node.state not in by_state:
                by_state[node.state] = Group([])
                groups.append(by_state[node.state])
            by_state[node.state].nodes.append(node)
    groups += [Group([n]) for n in graph.nodes if isinstance(n, ProcessorNode) and n.state is None]
    where = {node: group for group in groups for node in group.nodes}

    def behind(group: Group) -> Iterator[Group | None]:
        for node in group.nodes:
            for child in graph.children(node):
                if (other := where.get(child)) is not group:
                    yield other

    def before(group: Group) -> Iterator[Group | None]:
        for node in group.nodes:
            for parent in node.parents:
                if (other := where.get(parent)) is not group:
                    yield other

    def partner(group: Group) -> Group | None:
        for neighbours in (behind, before):
            found = set(neighbours(group))
            if len(found) == 1 and (only := found.pop()) is not None:
                return only
        return None

    while True:
        pair = next(((group, other) for group in groups if (other := partner(group)) is not None), None)
        if pair is None:
            return groups
        both = Group(sorted((n for group in pair for n in group.nodes), key=lambda n: n.index))
        groups = [group for group in groups if group not in pair] + [both]
        where.update(dict.fromkeys(both.nodes, both))
