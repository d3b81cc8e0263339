"""A thin client of one namespace: manifests in, manifests out, errors as Ardea has them."""

from __future__ import annotations

import contextlib
import json
import math
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import urlencode

from ardea.errors import ClusterError, Conflict, NotFound, Unreachable, Unrecognized, UserError
from ardea.scheduler.kubernetes.exec import Exec
from ardea.scheduler.kubernetes.layout import ACCOUNT_MOUNT
from ardea.scheduler.kubernetes.names import FIELD_MANAGER

Manifest = dict[str, Any]
_PATHS = {
    "ConfigMap": "api/v1/namespaces/{}/configmaps",
    "Event": "api/v1/namespaces/{}/events",
    "Job": "apis/batch/v1/namespaces/{}/jobs",
    "Lease": "apis/coordination.k8s.io/v1/namespaces/{}/leases",
    "Node": "api/v1/nodes",
    "Pod": "api/v1/namespaces/{}/pods",
    "ResourceQuota": "api/v1/namespaces/{}/resourcequotas",
    "Role": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "Secret": "api/v1/namespaces/{}/secrets",
    "ServiceAccount": "api/v1/namespaces/{}/serviceaccounts",
}
_CONNECT_SECS, _ANSWER_SECS = 5.0, 30.0
if sys.platform == "darwin":
    _IDLE = socket.TCP_KEEPALIVE
else:
    _IDLE = socket.TCP_KEEPIDLE
_SOCKET = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),  # as without these options
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, _IDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]
"""Of each connection: one whose other end is gone without a word breaks after a minute, also where nothing is sent."""


class Objects(Protocol):
    """What the keeper and the verbs ask of a cluster; :class:`Cluster` is the real one."""

    namespace: str

    def find(self, kind: str, name: str) -> Manifest | None:
        """The object; None: there is none."""

    def list(self, kind: str, selector: str = "") -> list[Manifest]:
        """Those with these labels, by name."""

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Conflict if it exists."""

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Makes it so, whatever was there (server-side apply)."""

    def patch(self, kind: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """A merge; of a ``status``, lists are merged by their key.

        Conflict if ``change`` has another UID or version.
        """

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
        foreground: bool = False,
    ) -> None:
        """Whether it is there or not; with ``uid`` only that very object, with ``version`` only as it was then."""


class LogStream:
    """The lines of a log, without their ends, for one reader.  It raises Unreachable when its connection breaks."""

    def __init__(self, answer: Any, what: str) -> None:
        """``answer`` is urllib3's, and has not been read; ``what`` is in it: ``the log of POD CONTAINER``."""
        self._answer, self._what = answer, what
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError

        rest = b""
        try:
            for chunk in self._answer.stream(1 << 16):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from whole
        except (HTTPError, OSError) as error:  # half a line is none
            if not self._closed:
                raise Unreachable(f"{self._what} breaks off: {error}") from error
            return
        if rest:
            yield rest

    def close(self) -> None:
        """From any thread: its reader comes to the end.  Can be repeated."""
        self._closed = True
        with contextlib.suppress(ValueError, RuntimeError, OSError):  # it has come there already
            self._answer.shutdown()
        self._answer.close()


class Cluster:
    """One namespace of one cluster."""

    def __init__(self, api: Any, namespace: str, *, inside: bool = False) -> None:
        """``api`` is an ``ApiClient``; ``inside``: it has the account of the pod that this runs in."""
        self.api, self.namespace = api, namespace
        self._inside = inside
        self._ahead = timedelta()

    @classmethod
    def connect(
        cls, namespace: str | None = None, context: str | None = None, kubeconfig: str | None = None
    ) -> Cluster:
        """As kubectl does: a kubeconfig, else the service account of the pod that this runs in.  Asks nothing yet.

        Raises:
            UserError: the package kubernetes is not installed, or there is no such configuration or context.
        """
        try:
            from kubernetes import client, config  # large, and nobody else needs it
        except ModuleNotFoundError as error:
            raise UserError(
                "Kubernetes needs the package kubernetes, which is not installed",
                hint="pip install 'ardea[kubernetes]'",
            ) from error
        settings = client.Configuration()
        settings.socket_options = _SOCKET
        try:
            if not kubeconfig and not context and (ACCOUNT_MOUNT / "token").exists():
                config.load_incluster_config(client_configuration=settings)
                namespace = namespace or (ACCOUNT_MOUNT / "namespace").read_text()
                return cls(client.ApiClient(settings), namespace, inside=True)
            contexts, active = config.list_kube_config_contexts(kubeconfig)
            chosen = next((c for c in contexts if c["name"] == context), None) if context else active
            if chosen is None:
                known = ", ".join(sorted(c["name"] for c in contexts))
                raise UserError(f"the kubeconfig has no context {context}; it has {known}")
            api = config.new_client_from_config(kubeconfig, chosen["name"], client_configuration=settings)
        except config.ConfigException as error:
            raise UserError(
                f"no cluster is known: {error}", hint="set KUBECONFIG, or say --kubeconfig FILE [--context NAME]"
            ) from error
        return cls(api, namespace or chosen["context"].get("namespace") or "default")

    # --- objects ----------------------------------------------------------------------------------------------

    def find(self, kind: str, name: str) -> Manifest | None:
        """The object; None: there is none."""
        try:
            return self._ask("GET", self._path(kind, name), f"read {kind} {name}")
        except NotFound:
            return None

    def list(self, kind: str, selector: str = "") -> list[Manifest]:
        """Those with these labels, by name."""
        query = {"labelSelector": selector} if selector else {}
        found = self._ask("GET", self._path(kind), f"list {kind}s", query)["items"]
        return sorted(found, key=lambda manifest: str(manifest["metadata"]["name"]))

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Conflict if it exists."""
        kind, name = manifest["kind"], manifest["metadata"].get("name", "")
        query = {"fieldManager": FIELD_MANAGER} | ({"dryRun": "All"} if dry_run else {})
        return self._ask("POST", self._path(kind), f"create {kind} {name}", query, manifest, "application/json")

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Makes it so, whatever was there (server-side apply)."""
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        query = {"fieldManager": FIELD_MANAGER, "force": "true"} | ({"dryRun": "All"} if dry_run else {})
        media = "application/apply-patch+yaml"
        return self._ask("PATCH", self._path(kind, name), f"apply {kind} {name}", query, manifest, media)

    def patch(self, kind: str, name: str, change: Manifest, subresource: str = "") -> Manifest:
        """A merge; of a ``status``, lists are merged by their key.

        Conflict if ``change`` has another UID or version.
        """
        media = f"application/{'strategic-' if subresource else ''}merge-patch+json"
        path = "/".join(filter(None, (self._path(kind, name), subresource)))
        return self._ask("PATCH", path, f"change {kind} {name}", {"fieldManager": FIELD_MANAGER}, change, media)

    def delete(
        self,
        kind: str,
        name: str,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
        foreground: bool = False,
    ) -> None:
        """Whether it is there or not; with ``uid`` only that very object, with ``version`` only as it was then."""
        options: Manifest = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if conditions := {key: value for key, value in (("uid", uid), ("resourceVersion", version)) if value}:
            options["preconditions"] = conditions
        if grace is not None:
            options["gracePeriodSeconds"] = grace
        with contextlib.suppress(NotFound, Conflict):  # gone, or not what it was any more
            self._ask("DELETE", self._path(kind, name), f"delete {kind} {name}", {}, options, "application/json")

    def may(self, verb: str, resource: str, group: str = "", subresource: str = "") -> bool:
        """Whether whoever asks has this right in the namespace."""
        wanted = {"namespace": self.namespace, "verb": verb, "resource": resource, "group": group}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted | ({"subresource": subresource} if subresource else {})},
        }
        path = "apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        answer = self._ask("POST", path, f"ask for the right to {verb} {resource}", {}, review, "application/json")
        return bool(answer["status"]["allowed"])

    @cached_property
    def asks_directly(self) -> bool:
        """Whether masters are asked over TCP: this runs in a pod whose account may start no programs in other pods."""
        return self._inside and not self.may("create", "pods", subresource="exec")

    def now(self) -> datetime:
        """By the clock of its API server, once that has answered: the one here may be minutes away from it."""
        return datetime.now(UTC) + self._ahead

    def version(self) -> tuple[int, int]:
        """Of the API server: (1, 31)."""
        answer = self._ask("GET", "version", "ask for the version")
        return int(answer["major"]), int(answer["minor"].rstrip("+"))

    def logs(
        self,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        tail: int | None = None,
        since: float | None = None,
        after: str = "",
    ) -> LogStream:
        """A container's log, open when this returns; for ``tail`` and ``since`` see :class:`Logs`.

        With ``follow`` each line begins with the time when it was printed, and a space; ``after`` is such a time, and
        what was printed in its second comes again.
        """
        follows = str(follow).lower()
        query = {"container": container, "follow": follows, "timestamps": follows}
        if after:
            query["sinceTime"] = after
        if tail is not None:
            query["tailLines"] = str(tail)
        if since is not None:
            query["sinceSeconds"] = str(max(1, math.ceil(since)))
        path, what = f"{self._path('Pod', pod)}/log", f"the log of {pod} {container}"
        return LogStream(self._request("GET", path, f"read {what}", query, stream=True), what)

    def open(self, pod: str, container: str, argv: Sequence[str], *, stdin: bool = False) -> Exec:
        """Starts a command in a container; ``stdin``: whether it is going to read.

        Raises:
            Unreachable: the connection cannot be made.
        """
        from kubernetes import client, stream

        what = f"run {argv[0]} in {pod} {container}"
        try:
            session = stream.stream(
                client.CoreV1Api(self.api).connect_get_namespaced_pod_exec,
                pod, self.namespace, container=container, command=list(argv),
                stdin=stdin, stdout=True, stderr=True, tty=False, binary=True, _preload_content=False,
            )  # fmt: skip
        except client.ApiException as error:
            raise _refusal(error.status or 0, (error.reason or "").encode(), what, self.namespace) from error
        return Exec(session, what)

    def execute(self, pod: str, container: str, argv: Sequence[str]) -> tuple[int, str]:
        """Runs a command in a container; its exit code, and what it said on stderr.

        Raises:
            Unreachable: the connection cannot be made, or breaks before the command has ended.
        """
        said = bytearray()
        command = self.open(pod, container, argv)
        try:
            return command.run(lambda _: None, said.extend), said.decode(errors="replace").strip()
        finally:
            command.close()

    def close(self) -> None:
        """Closes the connections."""
        self.api.rest_client.pool_manager.clear()
        self.api.close()

    # --- requests ---------------------------------------------------------------------------------------------

    def _path(self, kind: str, name: str = "") -> str:
        return "/".join(filter(None, (_PATHS[kind].format(self.namespace), name)))

    def _ask(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        media: str = "",
    ) -> Manifest:
        answer = self._request(method, path, what, query or {}, body, media)
        found: Manifest = json.loads(answer.data)
        return found

    def _request(
        self,
        method: str,
        path: str,
        what: str,
        query: Mapping[str, str],
        body: Manifest | None = None,
        media: str = "",
        *,
        stream: bool = False,
    ) -> Any:
        """Without the generated models of the package, which know neither apply nor dicts."""
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        headers = {"Accept": "application/json"} | ({"Content-Type": media} if media else {})
        self.api.update_params_for_auth(headers, [], ["BearerToken"])
        url = f"{self.api.configuration.host}/{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = self.api.rest_client.pool_manager.request(
                method,
                url,
                headers=headers,
                body=None if body is None else json.dumps(body),
                preload_content=not stream,
                timeout=Timeout(connect=_CONNECT_SECS, read=None if stream else _ANSWER_SECS),
                retries=False if stream else None,
            )
        except HTTPError as error:
            raise Unreachable(
                f"cannot {what}: the cluster at {self.api.configuration.host} does not answer: {error}",
                hint="`kubectl version` asks the same server; what runs in the cluster goes on meanwhile",
            ) from error
        with contextlib.suppress(KeyError, ValueError, TypeError):  # a proxy leaves it out, or writes its own
            self._ahead = parsedate_to_datetime(answer.headers["Date"]) - datetime.now(UTC)
        if answer.status < 400:
            return answer
        raise _refusal(answer.status, answer.data, what, self.namespace)


def _refusal(status: int, data: bytes, what: str, namespace: str) -> Exception:
    try:
        said = json.loads(data)["message"]
    except (ValueError, KeyError):
        said = data.decode(errors="replace")[:500]
    message = f"cannot {what} in namespace {namespace}: {said}"
    match status:
        case 404:
            return NotFound(message)
        case 409:
            return Conflict(message)
        case 422 if "metadata.uid: Invalid value" in said:
            return Conflict(f"{message}: another object has the name by now")
        case 403 if "exceeded quota" in said:
            return ClusterError(message, hint="`kubectl describe quota -n NAMESPACE` says what it holds, and for whom")
        case 401:
            return Unrecognized(message, hint="log in to the cluster again: its credentials here are not valid")
        case 403:
            return ClusterError(message, hint="`ardea doctor -n NAMESPACE` lists the rights that verbs need")
        case 400 | 422:
            return UserError(message)
        case 500 if "failed to create typed patch object" in said:  # a field that it does not know
            return UserError(message)
        case _:
            return Unreachable(f"{message} (HTTP {status})")
