"""Masters that come, freeze and wake in any order: only the newest one's writes are in force."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ardea.errors import Conflict, NotFound
from ardea.state import Create, Fenced, FileState, Set, Term, paths
from tests.sizes import share

ID = "wc-00000001"
PLAN = paths.physical_plan(ID)

masters = st.integers(0, 9)


class Masters(RuleBasedStateMachine):
    """Each writes by what it read last, be that long ago."""

    @initialize()
    def begin(self):
        self.folder = Path(tempfile.mkdtemp())
        self.connections = [FileState(self.folder), FileState(self.folder)]
        self.masters: list[Term] = []
        self.read: list[int] = []  # the version of the plan that each knows
        self.data, self.version = None, 0

    @rule()
    def one_comes(self):
        state = self.connections[len(self.masters) % 2]
        self.masters.append(Term.take(state, ID, f"master {len(self.masters)}"))
        self.read.append(self.version)

    @precondition(lambda self: self.masters)
    @rule(who=masters)
    def it_reads(self, who):
        self.read[who % len(self.masters)] = self.version

    @precondition(lambda self: self.masters)
    @rule(who=masters)
    def it_writes(self, who):
        """Whoever is replaced hears that, whether or not what it knows of the plan is old too."""
        number = who % len(self.masters)
        term, known = self.masters[number], self.read[number]
        data = b"by %d, version %d" % (number, known + 1)
        write = Set(PLAN, data, known) if known else Create(PLAN, data)
        if number < len(self.masters) - 1:
            with pytest.raises(Fenced):
                term.transaction([write])
        elif known != self.version:
            with pytest.raises((Conflict, NotFound)) as caught:
                term.transaction([write])
            assert not isinstance(caught.value, Fenced)
        else:
            assert term.transaction([write]) == (known + 1,)
            self.data, self.version = data, known + 1
            self.read[number] = self.version

    @invariant()
    def terms_rise(self):
        numbers = [term.number for term in getattr(self, "masters", ())]
        assert numbers == [*range(1, len(numbers) + 1)]

    @invariant()
    def the_plan_is_the_newest_masters(self):
        for state in getattr(self, "connections", ()):
            held = state.get(PLAN) if state.exists(PLAN) else None
            assert (held and held.data, held.version if held else 0) == (self.data, self.version)

    def teardown(self):
        for state in getattr(self, "connections", ()):
            state.close()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


Masters.TestCase.settings = settings(max_examples=share(25), stateful_step_count=20, deadline=None)
TestMasters = Masters.TestCase
