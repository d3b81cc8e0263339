"""The console as the chart installs it: asked from a pod, with each token and without, of topologies it may ask."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.process.scheduler.kubernetes.releases import (
    CHART,
    RELEASE,
    CommandError,
    evict,
    helm,
    kubectl,
    needs_cluster,
    objects,
    read,
)
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, described, pods
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
NAME = f"{RELEASE}-console"
_ASK = """
import json, sys, urllib.error, urllib.request
url, token, body = sys.argv[1:]
headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
asked = urllib.request.Request(url, body.encode() or None, headers)
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    answer = direct.open(asked, timeout=150)
except urllib.error.HTTPError as error:
    answer = error
content, kind = answer.read().decode(), answer.headers["Content-Type"]
print(json.dumps([answer.status, json.loads(content) if "json" in kind else content]))
"""


class Console:
    """What answers in one namespace, to who asks from a pod of another deployment."""

    def __init__(self, space: str) -> None:
        self.space = space
        data = read("secret", NAME, f"--namespace={space}")["data"]
        self.views, self.acts = (base64.b64decode(data[key]).decode() for key in ("view", "act"))

    def ask(self, path: str, token: str = "", body: str = "") -> tuple[int, Any]:
        asker = max(pod["metadata"]["name"] for pod in pods(self.space, "app.kubernetes.io/component=master"))
        url = f"http://{NAME}.{self.space}.svc:8080{path}"
        where = (asker, f"--namespace={self.space}", "-c", "topology-master")
        status, document = json.loads(kubectl("exec", *where, "--", "python", "-P", "-c", _ASK, url, token, body))
        return status, document

    def get(self, path: str, token: str) -> tuple[int, Any]:
        return self.ask(f"/api/v1{path}", token)

    def act(self, path: str, **order: Any) -> Any:
        """What the dry run says is confirmed; returns what was done."""
        where = f"/api/v1/topologies/{path}"
        status, preview = self.ask(where, self.acts, json.dumps(order))
        assert status == 200, preview
        status, done = self.ask(where, self.acts, json.dumps({**order, "confirm": preview["confirm"]}))
        assert status == 200, done
        return done

    def state(self, name: str) -> str | None:
        """What the master of a topology says of it; None: it was not asked."""
        status, said = self.get(f"/topologies/{name}", self.views)
        return said["status"]["state"] if status == 200 and said["status"] is not None else None

    def runs(self, name: str) -> None:
        """It says so of this topology, whose master it may ask."""
        what = f"{name} runs, and its master is asked"
        eventually(
            lambda: self.state(name) == "RUNNING", 60, lambda: f"{what}: {self.get(f'/topologies/{name}', self.views)}"
        )


def upgrade(space: str, *settings: str) -> None:
    chosen = [f"--set={setting}" for setting in settings]
    helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", "--wait", "--timeout=180s", *chosen)


def account_of(name: str, space: str, folder: Path) -> Path:
    """A kubeconfig with a service account's token."""
    kubectl("create", "serviceaccount", name, f"--namespace={space}")
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "--flatten", "-o", "json"))
    (user,) = config["users"]
    user["user"] = {"token": kubectl("create", "token", name, f"--namespace={space}").strip()}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


def test_it_shows_what_masters_say_to_who_has_a_token_and_nothing_of_another_namespace(space, other_space, tmp_path):
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--wait-secs", "240", space=space)
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--name", "Other", "--wait-secs", "240", space=other_space)
    bound = ("rbac.submitters[0].kind=ServiceAccount", "rbac.submitters[0].name=people")
    upgrade(space, "console.enabled=true", *bound)
    console = Console(space)

    assert console.get("/topologies", "")[0] == 401
    assert console.get("/topologies", "x" * 40)[0] == 401
    status, listed = console.get("/topologies", console.views)
    assert (status, [each["name"] for each in listed["topologies"]]) == (200, ["Quiet"])
    assert console.get("/topologies/Other", console.views)[0] == 404

    status, page = console.ask("/")
    assert (status, "<title>" in page) == (200, True)

    console.runs("Quiet")  # the Role names the Secret of what ran when the release was upgraded
    assert console.get("/topologies/Quiet/exceptions", console.views)[0] == 403
    assert console.get("/topologies/Quiet/exceptions", console.acts)[0] == 200

    # One that is submitted later lets it in: the rights of the chart's submitters suffice.
    people = ("--kubeconfig", account_of("people", space, tmp_path))
    named = ("--name", "Later", "--wait-secs", "240")
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", *named, *people, space=space)
    console.runs("Later")

    # One that has not is shown by its objects, with the reason and what to do.
    own = [each["metadata"]["name"] for each in read("rolebindings", f"--namespace={space}")["items"]]
    (binding,) = (name for name in own if name.startswith("later-callers-"))
    kubectl("delete", "rolebinding", binding, f"--namespace={space}")
    kubectl("rollout", "restart", f"deployment/{NAME}", f"--namespace={space}")
    kubectl("rollout", "status", f"deployment/{NAME}", f"--namespace={space}", "--timeout=180s")

    def refused() -> bool:
        said = console.get("/topologies/Later", console.views)[1]
        return "this account may not read the Secret later-callers" in (said.get("master_silent") or "")

    eventually(refused, 60, lambda: f"it says why: {console.get('/topologies/Later', console.views)}")

    upgrade(space, "console.topologies={Later}")
    again = Console(space)
    assert (again.views, again.acts) == (console.views, console.acts), "an upgrade keeps tokens"
    console.runs("Later")  # the Role names it now

    account = f"--as=system:serviceaccount:{space}:{NAME}"
    for verb, what in (("create", "pods/exec"), ("list", "secrets"), ("get", "secret/quiet-access")):
        with pytest.raises(CommandError, match=r"\nno\n"):
            kubectl("auth", "can-i", verb, what, account, f"--namespace={space}")


def test_it_acts_is_disrupted_one_pod_at_a_time_and_comes_back(space):
    install = ("console.enabled=true", "console.replicas=2")
    upgrade(space, *install)
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--wait-secs", "240", space=space)
    console = Console(space)
    console.runs("Quiet")

    order = json.dumps({})
    assert console.ask("/api/v1/topologies/Quiet/deactivate", console.views, order)[0] == 403
    console.act("Quiet/deactivate")
    assert described("Quiet", space)["state"] == "PAUSED"
    console.act("Quiet/activate")
    assert described("Quiet", space)["state"] == "RUNNING"

    budget = read("poddisruptionbudget", NAME, f"--namespace={space}")
    eventually(lambda: allowed(space) == 1, 60, lambda: f"one of two may be taken: {budget['status']}")
    first, second = pods(space, "app.kubernetes.io/component=console")
    evict(space, first["metadata"]["name"])
    with pytest.raises(CommandError, match="disruption budget"):
        evict(space, second["metadata"]["name"])
    eventually(lambda: allowed(space) == 1, 120, lambda: f"another one is ready: {budget['status']}")
    console.runs("Quiet")

    upgrade(space, "console.enabled=false")
    assert not pods(space, "app.kubernetes.io/component=console")
    upgrade(space, *install)
    again = Console(space)
    assert again.views != console.views, "its Secret went with it"
    again.runs("Quiet")

    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--name", "Stays", "--wait-secs", "240", space=space)
    again.act("Quiet/kill", wait_secs=1)
    left = {name for name in objects(space) if "quiet" in name and not name.endswith("-state")}
    chart = f"rbac.authorization.k8s.io/{NAME}-quiet"
    assert left <= {f"role.{chart}", f"rolebinding.{chart}"}, "the next upgrade takes these"


def allowed(space: str) -> int:
    """Pods of the console that may be evicted now."""
    status = read("poddisruptionbudget", NAME, f"--namespace={space}")["status"]
    return int(status["disruptionsAllowed"])
