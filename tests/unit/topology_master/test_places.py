"""Containers that stand still, wake, leave and are replaced in any order, under one master after another."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ardea.protocol.incarnations import admission_of, applicant
from ardea.topology_master.admissions import SILENCE
from tests.unit.topology_master.test_addresses import beside_the_other

holders = st.sampled_from("abcd")


class Places(RuleBasedStateMachine):
    """Of container 1.  Who is admitted knows it or, frozen before it heard of that, does not."""

    @initialize()
    def begin(self):
        self.meeting = beside_the_other()
        self.place: list[str] = []  # who had it, oldest first
        self.silent_since = 0.0
        self.left = False

    @rule(seconds=st.sampled_from([0.5, 2.0, SILENCE, 60.0]))
    def time_passes(self, seconds):
        self.meeting.now += seconds

    @rule(who=holders, knows=st.booleans(), leaves=st.booleans())
    def says_hello(self, who, knows, leaves):
        """Names its admission if it had one and has heard of it."""
        meeting, now = self.meeting, self.meeting.now
        admission = self.place.index(who) + 1 if knows and who in self.place else 0
        if not admission and who in self.place[:-1]:
            return  # decision 50: it counts as new, under a name of its own
        refused = len(meeting.refused)
        meeting.registers(1, who, ord(who), admission=admission, leaving=leaves)
        if not self.place or who == self.place[-1]:
            if not self.place and leaves:
                return
            if not self.place:
                self.place.append(who)
            self.silent_since, self.left = now, leaves
        elif admission:
            assert meeting.refused[refused:] == [(applicant(who, 1), "REPLACED")]
        elif self.left or now >= self.silent_since + SILENCE:
            self.place.append(who)
            self.silent_since, self.left = now, False

    @rule()
    def another_master(self):
        """Has heard nobody yet, and gives everybody time."""
        self.meeting.begins(self.meeting.master.term + 1)
        if not self.place:
            self.meeting.registers(2, "z", 99)
        self.silent_since, self.left = self.meeting.now, False

    @invariant()
    def the_last_one_holds_it(self):
        if getattr(self, "place", None):
            assert self.meeting.holds(1) == self.place[-1]
            known = self.meeting.master.admissions.containers.get(1)
            if known is not None and known.registered:
                assert known.holder == self.place[-1]
                assert admission_of(known.address.incarnation) == len(self.place)


TestPlaces = Places.TestCase
