"""What managers remember, and the state manager does not: it came back empty, or with an older copy of what it held."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ardea.plan.definition import Definition
from ardea.protocol.wire_pb2 import Hello
from ardea.state.records import ExecutionState, RunState

MOST = 2000
"""The highest term above which a master goes on: each is a write to the state."""
LOST = "the state manager has lost what it held"


@dataclass(frozen=True, slots=True)
class Memory:
    """Of one manager; ``term`` is that of the master that it heard last."""

    container: int
    term: int
    epoch: int
    paused: bool
    ending: bool

    @property
    def above(self) -> int:
        """What the next term is above."""
        return min(self.term, MOST)

    @classmethod
    def of(cls, hello: Hello) -> Memory:
        """What a hello says."""
        return cls(hello.container, hello.term, hello.epoch, hello.paused, hello.ending)

    def correct(self, found: ExecutionState, definition: Definition) -> ExecutionState:
        """The topology's state as it must have been, from what is stored of it and of its plan."""
        if found.state.final:
            return found
        if why := self._missing(found, definition):
            return ExecutionState(RunState.FAILED, f"{LOST}{why}")
        state = found.state
        if state in (RunState.RUNNING, RunState.PAUSED) and (self.paused or self.epoch):
            state = RunState.PAUSED if self.paused else RunState.RUNNING
        return msgspec.structs.replace(found, state=state, came_up=True)

    def _missing(self, found: ExecutionState, definition: Definition) -> str:
        """What nobody knows any more, and without which it would go on wrongly."""
        if self.term > MOST:
            return (
                f": container {self.container} has heard of term {self.term:,}, and none above {MOST:,} is begun again"
            )
        if self.epoch > definition.epoch:
            return f": its plan is of epoch {definition.epoch}, and container {self.container} works by {self.epoch}"
        if self.ending and found.state is not RunState.ENDING:
            return ", and the end of the topology was under way"
        if definition.state_users:
            return f", and with it what {', '.join(sorted(definition.state_users))} kept there"
        return ""


class ForgottenError(Exception):
    """This master acts by less than a manager remembers: a new term has to begin, above that of ``memory``."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(f"container {memory.container} has heard of term {memory.term}")
        self.memory = memory
