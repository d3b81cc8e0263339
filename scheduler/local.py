"""The scheduler ``local``: a daemon on this machine keeps the topology when the submitter is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from ardea.config import Settings
from ardea.errors import ArdeaError, ClusterError, Conflict, ExitCode, NotFound, TimedOut, Unreachable, UserError
from ardea.plan.definition import Begins, Definition
from ardea.scheduler.daemon import DAEMON, Launch
from ardea.scheduler.home import DEFAULT, Home
from ardea.scheduler.kill import Killing
from ardea.scheduler.local_checks import checks
from ardea.scheduler.local_handle import LocalHandle
from ardea.scheduler.local_health import with_health
from ardea.scheduler.logs import LocalLogs
from ardea.scheduler.schedulers import Check, Deployment, Say, Scheduler, Verdict
from ardea.scheduler.submission import Submission
from ardea.snapshots.kept import Kept, savepoints_in
from ardea.snapshots.place import savepoints_at
from ardea.state import paths
from ardea.state.records import RunState
from ardea.state.topologies import TopologyStatus, free, listing

ACCEPTED_WITHIN = 30.0
"""Seconds that a daemon has to say whether it keeps the topology."""
_REFUSALS: Mapping[ExitCode, type[ArdeaError]] = {
    kind.exit_code: kind for kind in (Conflict, NotFound, TimedOut, Unreachable, UserError)
}
METRICS_KEY = "heron.metricsmgr.port"
MetricsPort = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Container N serves /metrics on this port + N; 0: any free port.")
]
State = Annotated[
    str,
    typer.Option(
        "--state",
        envvar="ARDEA_STATE",
        metavar="DIR",
        help="Where the state is: a directory, or zookeeper://host:port/root.",
    ),
]


class Local(Scheduler):
    """Start a topology on this machine; return when it runs."""

    finds_by = ("state",)

    def __init__(self, metrics_port: MetricsPort = None, state: State = DEFAULT) -> None:
        self._home = Home(state)
        self.place = self._home.address
        self._overrides = {} if metrics_port is None else {METRICS_KEY: metrics_port}

    def prepare(self, target: str, overrides: Mapping[str, Any], begins: Begins | None = None) -> LocalDeployment:
        """See :class:`Scheduler`."""
        submission = Submission.of(target, {**overrides, **self._overrides}, self._home.state_url)
        if begins is not None:
            submission = submission.begun_from(begins, seen=True)
        return LocalDeployment(submission, self._home, self.daemon())

    def topologies(self) -> list[TopologyStatus]:
        """See :class:`Scheduler`; the masters of those that run are asked for their health."""
        with self._home.open_state() as state:
            return with_health(state, self._home, listing(state))

    def find(self, topology: str) -> LocalHandle:
        """See :class:`Scheduler`."""
        return LocalHandle(self._home, topology)

    def logs(self, topology: str) -> LocalLogs:
        """See :class:`Scheduler`; those of the last twenty that ended stay."""
        return LocalLogs(self._home.find(topology))

    def savepoints(self, topology: str) -> list[Kept]:
        """See :class:`Scheduler`; what cannot be read is passed over."""
        try:
            definition = Definition.read(self._home.find(topology) / "definition")
            storage = Settings.of(definition.shape.config).snapshot_storage
        except ArdeaError:  # it is not known here any more, or not readable
            storage = None
        try:
            return savepoints_in(savepoints_at(storage, self._home.state_url), paths.called(topology))
        except UserError:
            return []

    def checks(self, *, prune: bool) -> Iterator[Check]:
        """See :class:`Scheduler`."""
        return checks(self._home, prune=prune)

    def kill(self, topology: str, wait_secs: float, say: Say) -> None:
        """See :class:`Scheduler`; the logs stay."""
        with self._home.open_state() as state:
            try:
                found = self._home.topology(state, topology)
            except NotFound:
                if not free(state, topology):
                    raise
                say(f"nothing is called {topology}; what was left of the name is removed")
                return
            Killing(state, self._home, found, say).kill(wait_secs)
        say(f"{found.id} is gone; its logs stay in {self._home.folder(found.id)}")

    def daemon(self) -> list[str]:
        """The command of what keeps a topology; :mod:`ardea.scheduler.daemon` says what it reads and tells."""
        return list(DAEMON)


class LocalDeployment(Deployment):
    """A topology for a daemon."""

    def __init__(
        self, submission: Submission, home: Home, daemon: list[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``daemon`` is the command that keeps it."""
        self.submission = submission
        folder = home.folder(self.id)
        self.place = f"this machine; its logs are in {folder}"
        self.where = {"folder": str(folder)}
        self._home, self._daemon, self._clock = home, daemon, clock
        self._launch: Launch | None = None
        self._ran = False

    def submit(self, say: Say) -> None:  # noqa: ARG002
        """See :class:`Deployment`.

        Raises:
            ArdeaError: what the daemon met with; nothing was started.
        """
        self._launch = launch = Launch(self.submission, self._home, self._daemon)
        news = launch.news(self._clock() + ACCEPTED_WITHIN)
        if news is None:
            raise TimedOut(
                f"the daemon of {self.id} has said nothing for {ACCEPTED_WITHIN:g} s; it goes on starting",
                hint=f"`ardea list` shows whether it runs, `ardea kill {self.id}` ends it",
            )
        if news.kind == "refused":
            raise _REFUSALS.get(ExitCode(news.code), ClusterError)(news.text, hint=news.hint)

    def wait(self, patience: float | None, *, ended: bool, show: Callable[[str, str], None]) -> Verdict:
        """See :class:`Deployment`."""
        assert self._launch is not None, "it was not submitted"
        deadline = None if patience is None else self._clock() + patience
        missing = "waiting for its processes"
        while (news := self._launch.news(deadline)) is not None:
            if news.kind == "running":
                self._ran, missing = True, ""
                if not ended:
                    return Verdict(RunState.RUNNING)
            elif news.kind == "over":
                if not self._ran and news.text == RunState.KILLED:
                    return Verdict(RunState.KILLED, news.reason or "before it ran")
                if not self._ran and news.text != RunState.SUCCEEDED:
                    raise ClusterError(f"{self.id} {news.text} before it ran: {news.reason}", hint=news.hint)
                return Verdict(RunState(news.text), news.reason, news.hint)
            else:
                missing = news.text or missing
            show("RUNNING" if self._ran else "STARTING", missing)
        late = "has not ended" if self._ran else "does not run"
        goes_on = "; it goes on" if self._ran else f": {missing}; it goes on starting"
        raise TimedOut(
            f"{self.id} {late} after {patience:g} s{goes_on}",
            hint=f"`ardea describe {self.id}` shows how far it is, `ardea kill {self.id}` ends it",
        )

    def close(self) -> None:
        """See :class:`Deployment`."""
        if self._launch is not None:
            self._launch.close()
