"""A daemon as its submitter sees it."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ardea.errors import ClusterError
from ardea.plan.definition import Definition
from ardea.scheduler import daemon
from ardea.scheduler.daemon import Launch, News

SAYS = (sys.executable, "-c", """print('{"kind":"started"}', flush=True)""")


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """Of a daemon that says one word and ends; its charge is not looked at."""
    monkeypatch.setattr(daemon, "Charge", lambda *_: b"")
    submission = SimpleNamespace(definition=Definition, topology_class="", code=None)
    with Launch(submission, SimpleNamespace(address=str(tmp_path)), SAYS, clock=lambda: 0.0) as made:
        yield made
        with pytest.raises(ClusterError):  # it is dead, and was waited for
            list(iter(lambda: made.news(None), None))


@pytest.mark.parametrize("deadline", [None, 1e10])
def test_news_may_be_waited_for_longer_than_a_machine_can_sleep(launch, deadline):
    assert launch.news(deadline) == News("started")


def test_a_wait_that_is_over_before_its_deadline_is_waited_again(launch, monkeypatch):
    """As one that is cut is."""
    real, waits = daemon.select.select, []

    def select(readers, *rest):
        waits.append(rest[-1])
        return ([], [], []) if len(waits) < 3 else real(readers, *rest)

    monkeypatch.setattr(daemon, "select", SimpleNamespace(select=select))
    assert launch.news(1e10) == News("started")
    assert len(waits) >= 3  # a line may come in two parts
    assert {*waits} == {daemon.LONGEST_WAIT}
    assert launch.news(0.0) is None
