"""The way of markers through a manager: once over each link, in order with the rows that wait for each task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ardea.protocol.flow import Channel
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import WATERMARK, Header
from ardea.stream_manager.inputs import Inputs
from ardea.stream_manager.members import Members
from ardea.stream_manager.output_credit import Outputs

Batch = tuple[Header, Sequence[bytes]]


class Markers:
    """Those that pass one manager; ``channels`` are the ways to all tasks, on which rows may wait."""

    def __init__(
        self,
        channels: Mapping[int, Channel[Batch]],
        members: Members,
        inputs: Inputs,
        outputs: Outputs,
    ) -> None:
        self._channels = channels
        self._members = members
        self._consumers = inputs.consumers
        self._outputs = outputs

    def spread(self, header: Header, now: float) -> None:
        """One of a local task: it goes to each container at once, but for the tasks whose rows wait here."""
        members, tasks = self._members, self._members.plan.tasks
        source, targets = header.source, header.targets or members.plan.readers(tasks[header.source].component)
        header.container, header.container_life = members.container, members.me
        header.source_life = members.lives.get(source, 0)
        free: dict[int, list[int]] = {}
        for target in targets:
            if target not in self._channels:
                continue
            if header.kind == WATERMARK and self._stands_for(header, self._channels[target]):
                continue
            if self._channels[target].offer((header, ()), 0, 0):
                free.setdefault(tasks[target].container, []).append(target)
            else:
                self._outputs.output_credits[source].hold(0, now)
        for container, those in free.items():
            self.forward(header, container, those)

    @staticmethod
    def _stands_for(header: Header, channel: Channel[Batch]) -> bool:
        """Whether it has taken the place of an older watermark of its task, behind which no rows wait.

        Else they would gather as long as a task is away to which no rows go.
        """
        held = channel.held
        for place in range(len(held) - 1, -1, -1):
            other = held[place][0][0]
            if other.kind != WATERMARK:
                return False
            if other.source == header.source:
                held[place] = (header, ()), 0, 0
                return True
        return False

    def forward(self, header: Header, container: int, targets: Sequence[int]) -> None:
        """To tasks of one container, for which nothing of the source waits here any more."""
        marker, lives = Header(), self._members.lives
        marker.CopyFrom(header)
        marker.ClearField("targets")
        marker.ClearField("target_lives")
        marker.targets.extend(targets)
        marker.target_lives.extend(lives[target] for target in targets)
        if container == self._members.container:
            self.hand_over(marker)
        else:
            self._members.peers[container].send(Lane.DATA, marker)

    def hand_over(self, marker: Header) -> None:
        """To the local tasks that it names; one that has another incarnation is told again by the source itself."""
        instances, addressed = self._members.instances, [*zip(marker.targets, marker.target_lives, strict=True)]
        marker.ClearField("targets")
        marker.ClearField("target_lives")
        for target, life in addressed:
            if target in self._consumers and self._consumers[target].life == life:
                marker.target = target
                instances[target].send(Lane.DATA, marker)
