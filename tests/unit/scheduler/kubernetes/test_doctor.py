"""What `ardea doctor` says of an account's rights is what the verbs ask a cluster for."""

from __future__ import annotations

import pytest

from ardea.scheduler.kubernetes.doctor import RIGHTS
from ardea.scheduler.kubernetes.kill import Killing
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.root_object import write_status
from ardea.scheduler.kubernetes.submission import find_defaults, submit
from ardea.scheduler.kubernetes.topologies import find
from ardea.scheduler.kubernetes.waiting import Waiter

VERBS = {
    "find": ("get",),
    "list": ("list",),
    "create": ("create",),
    "apply": ("create", "patch"),
    "patch": ("patch",),
    "delete": ("delete",),
}


class Noting:
    """A cluster that notes the rights that it takes to ask it."""

    def __init__(self, cluster):
        self._cluster, self.used = cluster, set()

    def __getattr__(self, name):
        asked = getattr(self._cluster, name)

        def ask(what, *args, **options):
            kind = what if isinstance(what, str) else what["kind"]
            self.used |= {(verb, f"{kind.lower()}s", "") for verb in VERBS[name]}
            if "blockOwnerDeletion" in str((what, args)):
                self.used.add(("update", "configmaps", "finalizers"))
            return asked(what, *args, **options)

        return ask if name in VERBS else asked


@pytest.fixture
def noting(cluster):
    return Noting(cluster)


def ended(cluster):
    write_status(cluster, cluster.find("ConfigMap", "sums"), RootStatus(state="SUCCEEDED", came_up=True))


def test_submit(cluster, noting, prepared):
    find_defaults(noting)
    submit(noting, prepared())
    ended(cluster)
    root = submit(noting, prepared())  # the former one makes room
    wait = Waiter(noting, root, lambda _: ended(cluster), pause=lambda _: None)
    assert wait.wait(10.0, ended=True).state == "SUCCEEDED"
    assert noting.used - set(RIGHTS["submit"]) == set()


def test_kill(cluster, noting, prepared):
    submit(cluster, prepared())
    Killing(noting, find(noting, "Sums"), lambda _: None, clock=lambda: 0.0, pause=lambda _: None).kill(1.0)
    assert cluster.objects == {}
    assert noting.used - set(RIGHTS["kill"]) == set()
