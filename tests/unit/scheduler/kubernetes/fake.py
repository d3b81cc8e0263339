"""A namespace in memory: as much of a cluster as the keeper and the verbs ask for."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from itertools import count

from ardea.errors import Conflict, NotFound


class FakeCluster:
    """``objects`` by (kind, name).  Deleting an owner deletes what it owns, as Kubernetes does a little later."""

    def __init__(self, namespace="here"):
        self.namespace = namespace
        self.asks_directly = False
        self.objects = {}
        self.calls = []
        self.refuses = set()  # names whose creation fails
        self._uids = count(1)
        self._versions = count(1)

    def now(self):
        return datetime.now(UTC)

    def find(self, kind, name):
        return copy.deepcopy(self.objects.get((kind, name)))

    def list(self, kind, selector=""):
        wanted = dict(pair.split("=") for pair in selector.split(",") if pair)
        return [
            copy.deepcopy(manifest)
            for (k, _), manifest in sorted(self.objects.items())
            if k == kind and wanted.items() <= manifest["metadata"].get("labels", {}).items()
        ]

    def create(self, manifest, *, dry_run=False):
        if "generateName" in manifest["metadata"]:
            name = f"{manifest['metadata']['generateName']}{next(self._uids)}"
            manifest = {**manifest, "metadata": {"name": name}}
        key = manifest["kind"], manifest["metadata"]["name"]
        if key in self.objects:
            raise Conflict(f"{key} exists")
        return self.apply(manifest, dry_run=dry_run)

    def apply(self, manifest, *, dry_run=False):
        key = manifest["kind"], manifest["metadata"]["name"]
        self.calls.append(("apply", *key))
        if key[1] in self.refuses:
            raise NotFound(f"{key} is refused")
        made = copy.deepcopy(manifest)
        made["metadata"].setdefault("uid", f"uid-{next(self._uids)}")
        made["metadata"]["resourceVersion"] = str(next(self._versions))
        made["metadata"].setdefault("creationTimestamp", f"2026-01-01T00:00:{next(self._uids):02}Z")
        if not dry_run:
            self.objects[key] = made
        return copy.deepcopy(made)

    def patch(self, kind, name, change, subresource=""):
        self.calls.append(("patch", kind, name, subresource))
        if (kind, name) not in self.objects:
            raise NotFound(f"no {kind} {name}")
        there = self.objects[kind, name]["metadata"]
        if change.get("metadata", {}).get("resourceVersion", there["resourceVersion"]) != there["resourceVersion"]:
            raise Conflict(f"{kind} {name} has changed")
        if change.get("metadata", {}).get("uid", there["uid"]) != there["uid"]:
            raise Conflict(f"another {kind} is called {name}")
        merge(self.objects[kind, name], change)
        there["resourceVersion"] = str(next(self._versions))
        return self.find(kind, name)

    def delete(self, kind, name, *, uid=None, version=None, grace=None, foreground=False):
        self.calls.append(("delete", kind, name, grace))
        there = self.objects.get((kind, name))
        if there is None or uid not in (None, there["metadata"]["uid"]):
            return
        if version not in (None, there["metadata"]["resourceVersion"]):
            return
        del self.objects[kind, name]
        for key, manifest in list(self.objects.items()):
            owners = [owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())]
            if there["metadata"]["uid"] in owners:
                self.objects.pop(key, None)


def merge(into, change):
    for key, value in change.items():
        if isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = value
