"""The console as the chart installs it: asked from a pod, with each token and without, of topologies it may ask."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.process.scheduler.kubernetes.releases import CHART, RELEASE, CommandError, helm, kubectl, needs_cluster, read
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, pods
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
NAME = f"{RELEASE}-console"
_ASK = """
import json, sys, urllib.error, urllib.request
url, token = sys.argv[1:]
asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    answer = direct.open(asked, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
print(json.dumps([answer.status, json.loads(answer.read())]))
"""


class Console:
    """What answers in one namespace, to who asks from a pod of another deployment."""

    def __init__(self, space: str) -> None:
        self.space = space
        data = read("secret", NAME, f"--namespace={space}")["data"]
        self.view, self.act = (base64.b64decode(data[key]).decode() for key in ("view", "act"))

    def get(self, path: str, token: str) -> tuple[int, Any]:
        (asker, *_) = pods(self.space, "app.kubernetes.io/component=master")
        url = f"http://{NAME}.{self.space}.svc:8080/api/v1{path}"
        where = (asker["metadata"]["name"], f"--namespace={self.space}", "-c", "topology-master")
        status, document = json.loads(kubectl("exec", *where, "--", "python", "-P", "-c", _ASK, url, token))
        return status, document


def upgrade(space: str, *settings: str) -> None:
    chosen = [f"--set={setting}" for setting in settings]
    helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", "--wait", "--timeout=180s", *chosen)


def test_it_shows_what_masters_say_to_who_has_a_token_and_nothing_of_another_namespace(space, other_space):
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--wait-secs", "240", space=space)
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--name", "Other", "--wait-secs", "240", space=other_space)
    upgrade(space, "console.enabled=true")
    console = Console(space)

    assert console.get("/topologies", "")[0] == 401
    assert console.get("/topologies", "x" * 40)[0] == 401
    status, listed = console.get("/topologies", console.view)
    assert (status, [each["name"] for each in listed["topologies"]]) == (200, ["Quiet"])
    assert console.get("/topologies/Other", console.view)[0] == 404

    def live() -> bool:
        """Its Role names the Secret of what ran when the release was upgraded."""
        status, said = console.get("/topologies/Quiet", console.view)
        return status == 200 and said["status"] is not None and said["status"]["state"] == "RUNNING"

    eventually(live, 60, lambda: f"its master is asked: {console.get('/topologies/Quiet', console.view)}")
    assert console.get("/topologies/Quiet/exceptions", console.view)[0] == 403
    assert console.get("/topologies/Quiet/exceptions", console.act)[0] == 200

    # One that is submitted later lets it in.
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--name", "Later", "--wait-secs", "240", space=space)

    def asked() -> bool:
        return (console.get("/topologies/Later", console.view)[1].get("status") or {}).get("state") == "RUNNING"

    eventually(asked, 60, lambda: f"its own Role names it: {console.get('/topologies/Later', console.view)}")

    # One that has not is shown by its objects, with the reason and what to do.
    own = [each["metadata"]["name"] for each in read("rolebindings", f"--namespace={space}")["items"]]
    (binding,) = (name for name in own if name.startswith("later-callers-"))
    kubectl("delete", "rolebinding", binding, f"--namespace={space}")
    kubectl("rollout", "restart", f"deployment/{NAME}", f"--namespace={space}")
    kubectl("rollout", "status", f"deployment/{NAME}", f"--namespace={space}", "--timeout=180s")

    def refused() -> bool:
        said = console.get("/topologies/Later", console.view)[1]
        return "this account may not read the Secret later-callers" in (said.get("master_silent") or "")

    eventually(refused, 60, lambda: f"it says why: {console.get('/topologies/Later', console.view)}")

    upgrade(space, "console.topologies={Later}")
    again = Console(space)
    assert (again.view, again.act) == (console.view, console.act), "an upgrade keeps tokens"
    eventually(asked, 60, lambda: f"the Role names it now: {console.get('/topologies/Later', console.view)}")

    account = f"--as=system:serviceaccount:{space}:{NAME}"
    for verb, what in (("create", "pods/exec"), ("list", "secrets"), ("get", "secret/quiet-access")):
        with pytest.raises(CommandError, match=r"\nno\n"):
            kubectl("auth", "can-i", verb, what, account, f"--namespace={space}")
