"""The supervisor's decisions."""

from __future__ import annotations

import math
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ardea.errors import ExitCode
from ardea.supervision.spec import RESTARTED, Policy, ProcessSpec
from ardea.supervision.supervisor_state import (
    BACKOFF,
    SETTLED,
    Beat,
    Done,
    Ended,
    Exited,
    Finish,
    Hopeless,
    Kill,
    LeaderEnded,
    Look,
    Observed,
    Phase,
    ReportStuck,
    RestartRequested,
    Start,
    Started,
    StopRequested,
    SupervisorState,
    Tick,
)

MIB = 1 << 20
KILL, TERM = signal.SIGKILL, signal.SIGTERM


class World(RuleBasedStateMachine):
    """Processes that live, fall silent and die as they like, under one machine."""

    @initialize(
        restarts=st.lists(st.sampled_from(["always", "always", "never"]), min_size=1, max_size=3),
        ram=st.sampled_from([None, 100 * MIB]),
        leader=st.sampled_from([None, 0]),
    )
    def begin(self, restarts, ram, leader):
        self.now, self.leader = 0.0, leader
        self.policy = Policy(silence=10, startup=30, grace=5)
        specs = [ProcessSpec(f"p{i}", ("x",), ram=ram, restart=r, leads=i == leader) for i, r in enumerate(restarts)]
        self.state = SupervisorState(specs, self.policy, self.now)
        self.living: dict[str, dict] = {}
        self.due = {spec.name: 0.0 for spec in specs}
        self.streak = {spec.name: 0 for spec in specs}
        self.codes: dict[str, int] = {}
        self.stopped = self.interrupted = False
        self.led_out_at = None
        self.result = None
        self.feed(Tick())

    def feed(self, event):
        for instruction in self.state.handle(event, self.now):
            self.obey(instruction)

    def obey(self, instruction):
        assert self.result is None, "nothing follows the end"
        match instruction:
            case Start(name):
                assert name not in self.living, "two of one name"
                assert self.now >= self.due.pop(name), "before its back-off was over"
                assert not self.stopped or not self.state.stopping, "started after the stop"
                assert self.led_out_at is None, "started after the work was done"
                self.living[name] = {
                    "born": self.now,
                    "heard": self.now,
                    "called": self.now,
                    "reported": -math.inf,
                    "user": False,
                    "beaten": False,
                    "done": False,
                    "doomed": 0,
                }
                self.feed(Started(name))
            case Kill(name, number):
                process = self.living[name]
                assert process["doomed"] != KILL, "killed twice"
                process["doomed"] = number
            case ReportStuck(name):
                process = self.living[name]
                assert process["beaten"]
                assert process["user"]
                assert self.now - process["called"] >= min(self.policy.silence, self.policy.report)
                assert self.now - process["reported"] >= self.policy.report
                process["reported"] = self.now
            case Ended(name, code, _, again):
                process = self.living.pop(name)
                self.codes[name] = code
                if self.state.led_out and self.led_out_at is None:
                    assert (name, code) == ("p0", 0)
                    self.led_out_at = self.now
                    self.due.clear()
                if self.now - process["born"] >= SETTLED:
                    self.streak[name] = 0
                if again is not None:
                    assert code not in (0, 78)
                    assert (name, code) != ("p0", 76) or self.leader is None
                    assert again == BACKOFF[min(self.streak[name], len(BACKOFF) - 1)]
                    self.streak[name] += 1
                    self.due[name] = self.now + again
            case Finish(code):
                assert not self.living
                self.result = code
                codes = {self.codes.get(name) for name in self.state.processes}
                if self.led_out_at is not None:
                    assert code == 0
                elif self.leader is not None and self.codes.get("p0") == 76:
                    assert code == 76
                else:
                    done = codes == {0} and not self.interrupted
                    assert code == (0 if done else 78 if 78 in codes else 75)

    @rule(seconds=st.sampled_from([0, 0.1, 0.5, 1, 2, 4.9, 5, 9.9, 10, 30, 60, 1000]))
    def pass_time(self, seconds):
        self.now += seconds
        self.feed(Tick())

    @precondition(lambda self: self.living)
    @rule(data=st.data(), user=st.booleans(), same=st.booleans())
    def beat(self, data, user, same):
        name = data.draw(st.sampled_from(sorted(self.living)))
        self.living[name].update(heard=self.now, user=user, beaten=True)
        if not (user and same):
            self.living[name].update(called=self.now, reported=-math.inf)
        self.feed(Beat(name, user, user and same))

    @precondition(lambda self: self.living)
    @rule(data=st.data(), resident=st.integers(0, 200), cpu=st.floats(0, 1000), stopped=st.booleans())
    def look(self, data, resident, cpu, stopped):
        name = data.draw(st.sampled_from(sorted(self.living)))
        self.feed(Observed(name, Look(resident * MIB, cpu, stopped)))
        limit = self.state.processes[name].spec.ram
        assert limit is None or resident * MIB <= limit or self.living[name]["doomed"] == KILL

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def be_done(self, data):
        name = data.draw(st.sampled_from(sorted(self.living)))
        self.living[name]["done"] = True
        self.feed(Done(name))

    @precondition(lambda self: self.living)
    @rule(data=st.data(), code=st.sampled_from([0, 1, 75, 76, 78, -9, -11]))
    def end(self, data, code):
        name = data.draw(st.sampled_from(sorted(self.living)))
        early = code == 0 and self.living[name]["beaten"] and not self.living[name]["done"]
        self.feed(Exited(name, code))
        assert self.codes[name] == (75 if early else code)

    @precondition(lambda self: self.result is None)
    @rule(well=st.booleans())
    def a_leader_elsewhere_ends(self, well):
        if self.led_out_at is None and not self.state.stopping:
            self.led_out_at = self.now if well else self.now - self.policy.grace
            self.due.clear()
        self.feed(LeaderEnded(well))
        self.feed(Tick())

    @rule()
    def stop(self):
        self.interrupted |= bool(self.living or (self.due and not self.state.stopping))
        self.feed(StopRequested())
        self.stopped = True

    @invariant()
    def stopping_reaches_all(self):
        if getattr(self, "machine", None) and self.state.stopping:
            assert all(process["doomed"] in (TERM, KILL) for process in self.living.values())
            assert not any(p.phase is Phase.WAITING for p in self.state.processes.values())

    @invariant()
    def what_is_due_is_started(self):
        if getattr(self, "machine", None) and not self.state.stopping:
            led_out = float("inf") if self.led_out_at is None else self.led_out_at + self.policy.grace
            assert self.state.wakeup() == min(self.due.values(), default=led_out)

    @invariant()
    def nobody_outlives_the_work(self):
        if getattr(self, "led_out_at", None) is not None and self.now >= self.led_out_at + self.policy.grace:
            assert self.state.stopping

    def teardown(self):
        if not hasattr(self, "machine") or self.result is not None:
            return
        self.stop()
        self.now += self.policy.grace
        if self.result is None:
            self.feed(Tick())
        for name in list(self.living):
            assert self.living[name]["doomed"] == KILL
            self.feed(Exited(name, -KILL))
        assert self.result is not None


TestWorld = World.TestCase


def running(*specs: ProcessSpec, **policy: float) -> SupervisorState:
    """A machine whose processes all run since 0."""
    state = SupervisorState(specs or [ProcessSpec("a", ("x",))], Policy(**policy), 0.0)
    for start in state.handle(Tick(), 0.0):
        assert state.handle(Started(start.name), 0.0) == []
    return state


def ticks(state: SupervisorState, start: float, end: float, *, cpu: float | None = None, stopped: bool = False) -> list:
    """A look and a tick every second in (start, end]; ``cpu``: the share of a core that "a" uses."""
    found = []
    for now in range(int(start) + 1, int(end) + 1):
        if cpu is not None:
            found += state.handle(Observed("a", Look(0, cpu * now, stopped)), now)
        found += state.handle(Tick(), now)
    return found


def test_who_outlives_the_one_that_leads_is_stopped_then_killed():
    leader = ProcessSpec("manager", ("x",), leads=True)
    state = running(leader, ProcessSpec("a", ("x",)), ProcessSpec("b", ("x",)), ProcessSpec("c", ("x",)), grace=5)
    state.handle(Exited("c", 1), 0.5)
    state.handle(Tick(), 0.5)
    state.handle(Started("c"), 0.5)
    state.handle(Exited("c", 1), 0.9)  # waits for its second restart
    assert [type(i) for i in state.handle(Exited("manager", 0), 1.0)] == [Ended]
    assert state.handle(Exited("b", 1), 2.0) == [Ended("b", 1, "exit 1", None)]
    assert state.handle(Tick(), 5.9) == []
    assert state.wakeup() == 6.0
    assert state.handle(Tick(), 6.0) == [Kill("a", TERM)]
    assert state.handle(Tick(), 11.0) == [Kill("a", KILL)]
    assert state.handle(Exited("a", -KILL), 11.0)[-1] == Finish(ExitCode.OK)


def test_who_outlives_a_leader_elsewhere_is_stopped_too():
    state = running(ProcessSpec("a", ("x",)), grace=5)
    assert state.handle(LeaderEnded(well=True), 1.0) == []
    assert state.handle(Tick(), 6.0) == [Kill("a", TERM)]
    assert state.handle(Exited("a", 75), 6.1)[-1] == Finish(ExitCode.OK)


def test_nobody_waits_for_a_leader_elsewhere_that_cannot_go_on():
    state = running(ProcessSpec("a", ("x",)), grace=5)
    assert state.handle(LeaderEnded(well=False), 1.0) == []
    assert state.handle(Tick(), 1.0) == [Kill("a", TERM)]
    assert state.handle(Tick(), 6.0) == [Kill("a", KILL)]
    assert state.handle(Exited("a", -9), 6.1)[-1] == Finish(ExitCode.OK)


def test_a_hopeless_process_waits_for_the_leader_and_says_why():
    state = SupervisorState([ProcessSpec("a", ("x",))], Policy(), 0.0)
    state.handle(Hopeless("a", "exit 78 (no ledger)"), 0.0)
    assert ticks(state, 0, 100) == []
    assert state.handle(LeaderEnded(well=True), 100.0) == [Finish(ExitCode.OK)]
    assert state.cause == "a: exit 78 (no ledger)"


def test_a_hopeless_process_that_is_stopped_stays_hopeless():
    state = SupervisorState([ProcessSpec("a", ("x",))], Policy(), 0.0)
    state.handle(Hopeless("a", "exit 78"), 0.0)
    assert state.handle(RestartRequested(), 1.0) == []
    assert state.handle(StopRequested(), 2.0) == [Finish(ExitCode.PERMANENT)]


def test_a_leader_that_a_stop_ends_leads_nobody():
    state = running(ProcessSpec("manager", ("x",), leads=True), ProcessSpec("a", ("x",)))
    state.handle(StopRequested(), 1.0)
    state.handle(Exited("manager", 0), 1.1)
    assert state.handle(Exited("a", 75), 1.2)[-1] == Finish(ExitCode.TEMPORARY)


def test_a_leader_that_fails_is_started_again():
    state = running(ProcessSpec("manager", ("x",), leads=True), ProcessSpec("a", ("x",)))
    assert state.handle(Exited("manager", 75), 1.0) == [Ended("manager", 75, "exit 75", 0.0)]
    assert state.handle(Tick(), 1.0) == [Start("manager")]


def test_a_container_that_was_replaced_ends_and_says_so():
    """Its manager is told, whatever the others say as they end; of anybody else 76 is an error as any."""
    state = running(ProcessSpec("manager", ("x",), leads=True), ProcessSpec("a", ("x",)))
    assert state.handle(Exited("a", 76), 1.0) == [Ended("a", 76, "exit 76", 0.0)]
    assert state.handle(Tick(), 1.0) == [Start("a")]
    state.handle(Started("a"), 1.0)
    ended = Ended("manager", 76, "exit 76 (REPLACED)", None)
    assert state.handle(Exited("manager", 76, "REPLACED"), 2.0) == [ended, Kill("a", TERM)]
    assert state.handle(Exited("a", 78), 2.1)[-1] == Finish(ExitCode.REPLACED)
    assert state.cause == "manager: exit 76 (REPLACED)"


def test_the_back_off_grows_to_thirty_seconds_and_starts_again_after_a_minute_of_life():
    state, now, waits = running(), 0.0, []
    for _ in range(10):
        (ended,) = state.handle(Exited("a", 1), now)
        waits.append(ended.again)
        if ended.again:
            assert state.handle(Tick(), now + ended.again - 0.01) == []
        now += ended.again
        assert state.handle(Tick(), now) == [Start("a")]
        state.handle(Started("a"), now)
    assert waits == [0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    (ended,) = state.handle(Exited("a", 1), now + 60)
    assert ended.again == 0


def test_ten_silent_seconds_in_the_io_loop_kill():
    state = running()
    state.handle(Beat("a", in_user_code=False), 0)
    assert ticks(state, 0, 9, cpu=1) == []
    assert ticks(state, 9, 11, cpu=1) == [Kill("a", KILL)]
    (ended,) = state.handle(Exited("a", -KILL), 12)
    assert ended.reason == "killed by SIGKILL (silent for 10.0 s)"


def test_what_a_debugger_holds_is_neither_killed_nor_reported():
    state = running(ProcessSpec("a", ("x",), debugged=True))
    held = state.handle(Beat("a", in_user_code=True), 0) + ticks(state, 0, 300, stopped=True)
    assert held + state.handle(Beat("a", in_user_code=True, same_call=True), 300) == []


def test_busy_user_code_is_reported_every_thirty_seconds_and_never_killed():
    state = running()
    state.handle(Beat("a", in_user_code=True), 0)
    found = ticks(state, 0, 99, cpu=0.5)
    assert [type(each) for each in found] == [ReportStuck] * 3
    assert [each.seconds for each in found] == [10, 40, 70]
    assert state.processes["a"].state == "silent"
    state.handle(Beat("a", in_user_code=True), 100)
    assert state.processes["a"].state == "running"


def test_a_call_that_does_not_return_is_reported_every_thirty_seconds_and_never_killed():
    """Its loop beats: the call waits for something.  The next call is another one."""
    state, found = running(), []
    for now in range(100):
        found += state.handle(Beat("a", in_user_code=True, same_call=now > 5), now)
        found += state.handle(Tick(), now)
    assert found == [ReportStuck("a", 30), ReportStuck("a", 60), ReportStuck("a", 90)]
    assert state.processes["a"].state == "stuck"
    assert state.handle(Beat("a", in_user_code=True), 100) == []
    assert state.processes["a"].state == "running"


@pytest.mark.parametrize(("cpu", "stopped", "why"), [(0.001, False, "it is idle"), (0.5, True, "it is stopped")])
def test_silent_user_code_that_is_idle_or_stopped_is_killed(cpu, stopped, why):
    state = running()
    state.handle(Beat("a", in_user_code=True), 0)
    assert ticks(state, 0, 10, cpu=cpu, stopped=stopped) == [Kill("a", KILL)]
    assert why in state.processes["a"].killed


def test_who_gets_no_core_or_waits_for_a_disk_is_not_idle():
    state = running()
    state.handle(Beat("a", in_user_code=True), 0)
    found = []
    for now in range(1, 25):
        found += state.handle(Observed("a", Look(0, 0.0, stopped=False, ready=now < 20)), now)
        found += state.handle(Tick(), now)
    assert found == [ReportStuck("a", 10), Kill("a", KILL)]


def test_user_code_that_stops_working_later_is_killed_later():
    state = running()
    state.handle(Beat("a", in_user_code=True), 0)
    ticks(state, 0, 20, cpu=1)
    found = []
    for now in range(21, 40):
        found += state.handle(Observed("a", Look(0, 20.0, stopped=False)), now)
        found += state.handle(Tick(), now)
    assert found == [Kill("a", KILL)]


def test_without_proc_user_code_is_assumed_to_work():
    state = running()
    state.handle(Beat("a", in_user_code=True), 0)
    assert ticks(state, 0, 20) == [ReportStuck("a", 10)]


def test_a_busy_start_has_thirty_seconds_for_its_first_beat_and_an_idle_one_ten():
    assert ticks(running(), 0, 29, cpu=1) == []
    state = running()
    ticks(state, 0, 29, cpu=1)
    assert ticks(state, 29, 40, cpu=1) == [Kill("a", KILL)]
    assert ticks(running(), 0, 10, cpu=0) == [Kill("a", KILL)]


def test_time_in_which_the_supervisor_itself_stood_still_is_nobodys_silence():
    state = running()
    state.handle(Beat("a", in_user_code=False), 1)
    state.handle(Tick(), 1)
    assert state.handle(Tick(), 1000) == []
    assert ticks(state, 1000, 1004) == []
    assert ticks(state, 1004, 1010) == [Kill("a", KILL)]


def test_memory_over_the_limit_kills_once_and_says_both_numbers():
    state = running(ProcessSpec("a", ("x",), ram=256 * MIB))
    assert state.handle(Observed("a", Look(256 * MIB, 0, stopped=False)), 1) == []
    assert state.handle(Observed("a", Look(300 * MIB, 0, stopped=False)), 2) == [Kill("a", KILL)]
    assert state.handle(Observed("a", Look(400 * MIB, 0, stopped=False)), 3) == []
    (ended,) = state.handle(Exited("a", -KILL), 4)
    assert ended.reason == "killed by SIGKILL (memory limit 256 MiB exceeded: 300 MiB resident)"
    assert ended.again == 0


def test_exit_78_stops_the_others_and_is_the_result():
    state = running(ProcessSpec("a", ("x",)), ProcessSpec("b", ("x",)))
    ended, kill = state.handle(Exited("a", 78, "no such topology"), 1)
    assert ended == Ended("a", 78, "exit 78 (no such topology)", None)
    assert kill == Kill("b", TERM)
    assert state.cause == "a: exit 78 (no such topology)"
    assert state.handle(Exited("b", 0), 2)[-1] == Finish(ExitCode.PERMANENT)


def test_a_process_that_is_never_restarted_ends_the_others_unless_it_exits_zero():
    specs = ProcessSpec("a", ("x",), restart="never"), ProcessSpec("b", ("x",))
    state = running(*specs)
    assert len(state.handle(Exited("a", 0), 1)) == 1
    assert not state.stopping
    state = running(*specs)
    assert Kill("b", TERM) in state.handle(Exited("a", 1), 1)
    assert state.handle(Exited("b", 0), 2)[-1] == Finish(ExitCode.TEMPORARY)


def test_a_stop_cancels_a_restart_that_is_due_later():
    state = running()
    for now in (1.0, 2.0):
        state.handle(Exited("a", 1), now)
        if now == 1.0:
            state.handle(Tick(), now)
            state.handle(Started("a"), now)
    assert state.handle(StopRequested(), 2.1) == [Finish(ExitCode.TEMPORARY)]


def test_who_ends_in_good_order_when_told_to_has_not_done_its_work():
    state = running()
    assert state.handle(StopRequested(), 1) == [Kill("a", TERM)]
    assert state.handle(Exited("a", 0), 2)[-1] == Finish(ExitCode.TEMPORARY)


@pytest.mark.parametrize("code", [0, 75, 78, -TERM])
def test_a_restart_that_was_asked_for_starts_again_at_once_whatever_the_exit_code(code):
    """Time and again: it counts neither as a failure nor for the back-off."""
    state, now = running(), 1.0
    for restarts in range(1, 6):
        assert state.handle(RestartRequested(), now) == [Kill("a", TERM)]
        assert state.handle(RestartRequested(), now) == []
        (ended,) = state.handle(Exited("a", code), now)
        assert (ended.again, RESTARTED in ended.reason) == (0.0, True)
        assert state.handle(Tick(), now) == [Start("a")]
        state.handle(Started("a"), now)
        state.handle(Beat("a", False), now)
        process = state.processes["a"]
        assert (process.restarts, process.failures) == (restarts, 0)
        now += 1


def test_who_does_not_follow_a_restart_is_killed_after_the_grace():
    state = running()
    state.handle(RestartRequested(), 1)
    for second in range(2, 11):
        state.handle(Beat("a", False), second)
        assert state.handle(Tick(), second) == []
    state.handle(Beat("a", False), 11)
    assert state.handle(Tick(), 11) == [Kill("a", KILL)]
    assert state.handle(Tick(), 11.5) == []
    (ended,) = state.handle(Exited("a", -KILL), 12)
    assert ended.again == 0.0


def test_a_stop_overrules_a_restart():
    state = running()
    state.handle(RestartRequested(), 1)
    state.handle(StopRequested(), 1)
    assert state.handle(Exited("a", 0), 2)[-1] == Finish(ExitCode.TEMPORARY)
    assert running().handle(RestartRequested(), 1) == [Kill("a", TERM)]


def test_a_process_that_starts_while_all_stop_is_told_at_once():
    state = SupervisorState([ProcessSpec("a", ("x",))], Policy(), 0.0)
    assert state.handle(Tick(), 0) == [Start("a")]
    assert state.handle(StopRequested(), 0) == []
    assert state.handle(Started("a"), 0) == [Kill("a", TERM)]


@given(st.lists(st.floats(0.01, 9.9), max_size=30), st.booleans())
def test_whoever_beats_in_time_lives(gaps, user):
    state, now = running(), 0.0
    for gap in gaps:
        now += gap
        assert state.handle(Tick(), now) == []
        state.handle(Beat("a", user), now)
