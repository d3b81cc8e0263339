"""The keeper at work: looks at one topology's objects, does what :mod:`.decisions` decides."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from ardea.errors import ArdeaError, NotFound, Unreachable, Unrecognized
from ardea.health import cut_off
from ardea.plan.definition import Definition
from ardea.scheduler.control import MasterClient, Status
from ardea.scheduler.follow import Follower
from ardea.scheduler.hopeless_run import hopeless_start
from ardea.scheduler.kubernetes import names, objects, pods
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.decisions import (
    Action,
    CreateJob,
    DeleteJob,
    Fail,
    ForgetPod,
    content_of,
    decide,
    job_seen,
    pod_seen,
)
from ardea.scheduler.kubernetes.manifest_inputs import PODS, ManifestInputs, Pods
from ardea.scheduler.kubernetes.reporter import OwnPod, Reporter
from ardea.scheduler.kubernetes.root_object import remove_jobs
from ardea.state import StateManager
from ardea.state.records import RunState

LOOK_EVERY = 2.0
ASK_PATIENCE = 2.0
ACCOUNT_LOOK_EVERY = 10.0
UNRECOGNIZED_FOR = 30.0
"""Seconds after which a token that the cluster refuses is not a passing weakness of the cluster."""
ROOTLESS_FOR = 10.0
"""Seconds that whoever has deleted the root has for the Jobs that it did not own."""
log = logging.getLogger("keeper")


def utc_now() -> datetime:
    """The present moment, with its time zone."""
    return datetime.now(UTC)


class Keeper:
    """Keeps one topology, as long as the process that it is part of acts as its master.

    It is the cluster's ``ardea.scheduler.follow.Processes``: the root, and with it all Jobs, follow the plan.
    """

    def __init__(
        self,
        cluster: Objects,
        inputs: ManifestInputs,
        state: StateManager,
        client: MasterClient,
        acting: Callable[[], bool],
        reporter: Reporter,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """``client`` asks by ``state``, and polls it."""
        self._cluster, self._inputs, self._client, self._acting, self._now = cluster, inputs, client, acting, now
        self._reporter = reporter
        self._follower = Follower(state, inputs.definition, self)
        self._drain_told: float | None = None
        self._rootless_since: datetime | None = None

    def round(self) -> None:
        """One look at everything; what it cannot do now is due in the next round.

        Raises:
            ArdeaError: the cluster does not answer, or refuses.
        """
        if (root := self._root()) is None:
            self._without_root()
            return
        self._rootless_since = None
        selector = names.of_topology(self._inputs.id)
        jobs, found = self._cluster.list("Job", selector), self._cluster.list("Pod", selector)
        status = self._ask()  # after the Jobs: one that has ended has done so for a reason that the master knows
        if status is None:
            return
        self._reporter.tell(self._inputs, root, status, jobs, found)
        over = RunState(status.state).final
        if not over and (cause := hopeless_start(status)) is not None:
            log.error("the topology fails: %s", cause.reason)
            self._client.ask("fail", reason=cause.reason, culprit=cause.culprit)
            return
        if not over:
            self._drain(objects.kill_of(root))
            if self._acting():
                self._follower.step()
        if status.epoch != self._inputs.definition.epoch:
            return  # Jobs by another plan than the master's would do harm
        wanted = {job["metadata"]["name"]: job for job in pods.jobs(self._inputs, root)}
        contents = {name: content_of(job) for name, job in wanted.items()}
        updating = status.update is not None and status.update.running
        seen = map(job_seen, jobs), map(pod_seen, found)
        for action in decide(contents, *seen, self._now(), over=over, updating=updating):
            if not self._acting():
                return
            self._do(action, wanted)

    def follow(self, definition: Definition) -> None:
        """The root says from now on what runs, in what pods; this round replaces Jobs of another content.

        Raises:
            NotFound: the root is gone, or the code of the plan.
            ArdeaError: the cluster does not answer, or refuses.
        """
        name = self._inputs.root
        root = self._cluster.find("ConfigMap", name)
        code = self._cluster.find("ConfigMap", names.code(name, definition.code))
        if root is None or code is None or self._is_anothers(root):
            raise NotFound(f"namespace {self._cluster.namespace} has no {'code' if root else 'root'} of {name}")
        inputs = ManifestInputs(definition=definition, pods=msgspec.json.decode(code["data"][PODS], type=Pods))
        record = objects.record_of(root).changed_to(definition)
        self._cluster.patch(
            "ConfigMap", name, {"metadata": {"uid": root["metadata"]["uid"]}, **objects.content(inputs, record)}
        )
        self._inputs = inputs

    def _do(self, action: Action, wanted: dict[str, Manifest]) -> None:
        match action:
            case CreateJob(name):
                log.info("creates Job %s", name)
                self._cluster.apply(wanted[name])
            case DeleteJob(name, uid, why):
                log.warning("deletes Job %s: %s", name, why)
                self._cluster.delete("Job", name, uid=uid)
                if name in wanted:
                    self._cluster.apply(wanted[name])
            case ForgetPod(name, uid):
                log.warning("forgets pod %s: its node does not end it", name)
                self._cluster.delete("Pod", name, uid=uid, grace=0)
            case Fail(reason):
                log.error("the topology fails: %s", reason)
                self._client.ask("fail", reason=reason)

    def _ask(self) -> Status | None:
        try:
            return self._client.ask("status", patience=ASK_PATIENCE)
        except Unreachable:
            return None

    def _drain(self, seconds: float | None) -> None:
        if seconds is not None and seconds != self._drain_told:
            log.info("the topology is to end: open tuples have %g s", seconds)
            self._client.ask("drain", wait=f"{seconds:g}")
            self._drain_told = seconds

    def _root(self) -> Manifest | None:
        """None: it is gone, going, or another topology's."""
        root = self._cluster.find("ConfigMap", self._inputs.root)
        return None if root is None or objects.deleted_at(root) is not None or self._is_anothers(root) else root

    def _without_root(self) -> None:
        now = self._now()
        self._rootless_since = self._rootless_since or now
        if (now - self._rootless_since).total_seconds() >= ROOTLESS_FOR:
            remove_jobs(self._cluster, self._inputs.id, lambda: self._root() is None)

    def _is_anothers(self, root: Manifest) -> bool:
        """Whether the name is another topology's by now."""
        return objects.record_of(root).id != self._inputs.id


class KeeperThread(threading.Thread):
    """Rounds, as long as the process acts; an error ends a round, not the thread."""

    def __init__(
        self,
        keeper: Keeper,
        own_pod: OwnPod,
        acting: Callable[[], bool],
        silence: Callable[[], float],
        disowned: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``silence``: seconds since the state manager has answered this process.

        ``disowned`` is called when the pod's account is not the cluster's any more: only another pod gets a new token.
        """
        super().__init__(name="keeper", daemon=True)
        self._keeper, self._own_pod, self._acting, self._silence = keeper, own_pod, acting, silence
        self._disowned, self._clock = disowned, clock
        self._stop_asked = threading.Event()
        self._said = ""
        self._looked = self._recognized = clock()

    def run(self) -> None:
        """Until :meth:`stop`."""
        while not self._stop_asked.wait(LOOK_EVERY):
            self.look()

    def stop(self) -> None:
        """Returns when no round is under way."""
        self._stop_asked.set()
        self.join()

    def look(self) -> None:
        """One round."""
        try:
            self._own_pod.tell(cut_off(self._silence()))
            if self._acting():
                self._keeper.round()
                self._recognized = self._clock()
            elif self._clock() - self._looked >= ACCOUNT_LOOK_EVERY:
                self._looked = self._clock()
                self._own_pod.look()
                self._recognized = self._clock()
            self._said = ""
        except Exception as error:
            # Also one that nobody has foreseen, as of an answer that is no JSON, must not end the thread.
            said = error.message if isinstance(error, ArdeaError) else f"{type(error).__name__}: {error}"
            if said != self._said:
                log.warning("%s; it is tried again", said, exc_info=not isinstance(error, ArdeaError))
            self._said = said
            if not isinstance(error, Unrecognized):
                self._recognized = self._clock()
            elif self._clock() - self._recognized >= UNRECOGNIZED_FOR:
                self._disowned()
