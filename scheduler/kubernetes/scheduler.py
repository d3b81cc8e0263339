"""The scheduler ``kubernetes``: the Jobs of a topology in one namespace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from ardea.errors import NotFound, UsageError, UserError
from ardea.plan.definition import Begins
from ardea.scheduler.kubernetes import capacity, console_rights
from ardea.scheduler.kubernetes.client import Cluster, Manifest
from ardea.scheduler.kubernetes.doctor import checks
from ardea.scheduler.kubernetes.handle import KubernetesHandle
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.logs import PodLogs
from ardea.scheduler.kubernetes.manifest_file import CHART, preview, read_defaults
from ardea.scheduler.kubernetes.submission import Options, Prepared, find_defaults, prepare, submit
from ardea.scheduler.kubernetes.topologies import find, listing, with_health
from ardea.scheduler.kubernetes.waiting import PodsProgress, Waiter
from ardea.scheduler.kubernetes.ways import Ways
from ardea.scheduler.schedulers import Check, Deployment, Preview, Say, Scheduler, Verdict
from ardea.snapshots.kept import Kept
from ardea.state.records import RunState
from ardea.state.topologies import TopologyStatus

Image = Annotated[str | None, typer.Option(help="The image of all pods; default: the one that the chart names.")]
PathInImage = Annotated[
    str | None,
    typer.Option("--path-in-image", metavar="PATH", help="Where the topology's file is in the image; no code is sent."),
]
Include = Annotated[
    list[str] | None, typer.Option("--include", metavar="PATTERN", help="More files to send, such as 'data/*.csv'.")
]
State = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="URL", help="zookeeper[+tls]://host:port/root; default: the one that the chart names."
    ),
]
StateSecret = Annotated[
    str | None,
    typer.Option(
        "--state-secret",
        metavar="NAME",
        help="The Secret with certificates and password for ZooKeeper; default: the one that the chart names.",
    ),
]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", envvar="ARDEA_NAMESPACE", help="The namespace of a topology on Kubernetes."),
]
Context = Annotated[str | None, typer.Option("--context", help="The kubeconfig's context; default: its current one.")]
Kubeconfig = Annotated[
    str | None,
    typer.Option("--kubeconfig", metavar="FILE", help="The kubeconfig file; default: KUBECONFIG, else ~/.kube/config."),
]
DefaultsFile = Annotated[
    Path | None,
    typer.Option(
        "--defaults", metavar="FILE", help="A file with the chart's settings; default: those of the namespace."
    ),
]
IncludeSecrets = Annotated[bool, typer.Option("--include-secrets", help="With --dry-run: print the Secrets, too.")]


class Kubernetes(Scheduler):
    """Start a topology on Kubernetes; return when it runs."""

    start_secs = 120.0
    finds_by = ("namespace", "context", "kubeconfig")
    updates_by = ("image", "path_in_image", "include")

    def __init__(
        self,
        image: Image = None,
        path_in_image: PathInImage = None,
        include: Include = None,
        state: State = None,
        state_secret: StateSecret = None,
        namespace: Namespace = None,
        context: Context = None,
        kubeconfig: Kubeconfig = None,
        defaults: DefaultsFile = None,
        include_secrets: IncludeSecrets = False,
    ) -> None:
        """Reads nothing before it is needed.

        Raises:
            UserError: the options contradict one another.
        """
        if path_in_image is not None and include:
            raise UserError("--include sends files, and with --path-in-image nothing is sent")
        self._options = Options(
            image=image,
            state=state,
            state_secret=state_secret,
            path_in_image=path_in_image,
            include=tuple(include or ()),
        )
        self._where = namespace, context, kubeconfig
        self.place = f"namespace {namespace or 'of the context'}"
        self._defaults, self._include_secrets = defaults, include_secrets
        self._ways = Ways()

    @cached_property
    def _cluster(self) -> Cluster:
        """UserError if none is known."""
        cluster = Cluster.connect(*self._where)
        self.place = f"namespace {cluster.namespace}"
        return cluster

    def prepare(self, target: str, overrides: Mapping[str, Any], begins: Begins | None = None) -> Jobs:
        """See :class:`Scheduler`."""
        if self._include_secrets:
            raise UsageError("--include-secrets is about what --dry-run prints; nothing was submitted")
        defaults = read_defaults(self._defaults) if self._defaults else find_defaults(self._cluster)
        return Jobs(self._cluster, prepare(target, overrides, self._options, defaults, begins))

    def preview(self, target: str, overrides: Mapping[str, Any], begins: Begins | None = None) -> Preview:
        """See :class:`Scheduler`: manifests for kubectl."""
        namespace, context, kubeconfig = self._where
        if context or kubeconfig:
            raise UsageError("--dry-run asks no cluster, so --context and --kubeconfig have no place beside it")
        defaults = read_defaults(self._defaults) if self._defaults else CHART
        prepared = prepare(target, overrides, self._options, defaults, begins)
        return preview(prepared, namespace, include_secrets=self._include_secrets)

    def topologies(self) -> list[TopologyStatus]:
        """See :class:`Scheduler`."""
        return with_health(self._cluster, listing(self._cluster), self._cluster.now())

    def find(self, topology: str) -> KubernetesHandle:
        """See :class:`Scheduler`."""
        return KubernetesHandle(self._cluster, find(self._cluster, topology), self._options, self._ways)

    def savepoints(self, topology: str) -> list[Kept]:
        """See :class:`Scheduler`; a master lists them, so that none are known where no topology of the name runs."""
        try:
            with self.find(topology) as found:
                return found.kept(topology).savepoints
        except NotFound:
            return []

    def logs(self, topology: str) -> PodLogs:
        """See :class:`Scheduler`; they go with the pods."""
        return PodLogs(self._cluster, find(self._cluster, topology))

    def checks(self, *, prune: bool) -> Iterator[Check]:
        """See :class:`Scheduler`."""
        if prune:
            raise UsageError("--prune is for a state directory: on Kubernetes everything goes with its root object")
        return checks(self._cluster)

    def kill(self, topology: str, wait_secs: float, say: Say) -> None:
        """See :class:`Scheduler`."""
        found = find(self._cluster, topology)
        Killing(self._cluster, found, say).kill(wait_secs)
        say(f"{found.id} is gone")

    def close(self) -> None:
        """See :class:`Scheduler`."""
        self._ways.close()
        if "_cluster" in self.__dict__:
            self._cluster.close()


class Jobs(Deployment):
    """A topology for a namespace."""

    def __init__(self, cluster: Cluster, prepared: Prepared) -> None:
        self.submission = prepared.submission
        self.place = f"namespace {cluster.namespace}"
        self.where = {"namespace": cluster.namespace, "root": prepared.inputs.root}
        self.options = f" -n {cluster.namespace}"
        self._cluster, self._prepared = cluster, prepared
        self._root: Manifest = {}

    def submit(self, say: Say) -> None:
        """See :class:`Deployment`."""
        prepared = self._prepared
        capacity.require(self._cluster, prepared.inputs)
        self._root = submit(self._cluster, prepared)
        if refused := console_rights.grant(self._cluster, prepared.inputs, prepared.console, self._root):
            say(refused)

    def wait(self, patience: float | None, *, ended: bool, show: Callable[[str, str], None]) -> Verdict:
        """See :class:`Deployment`."""

        def seen(progress: PodsProgress) -> None:
            show(progress.status.state if progress.status else "STARTING", progress.line)

        status = Waiter(self._cluster, self._root, seen).wait(patience, ended=ended)
        hint = f"`ardea logs {self.id}{self.options}` shows what its processes said"
        return Verdict(RunState(status.state), status.reason, hint)
