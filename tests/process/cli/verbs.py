"""What several tests ask of a topology."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TOPOLOGIES = Path(__file__).with_name("topologies.py")


def topology(name: str) -> str:
    return f"{TOPOLOGIES}:{name}"


def describe(ardea, name: str) -> dict[str, Any]:
    told = ardea("describe", name, "-o", "json")
    return json.loads(told.stdout) if told.returncode == 0 else {}


def total(ardea, name: str, what: str) -> int:
    """One number of the component ``numbers``, from the metrics."""
    status = describe(ardea, name).get("status") or {}
    return status.get("components", {}).get("numbers", {}).get(what, 0)


def acked(ardea, name: str) -> int:
    return total(ardea, name, "acked")


def listed(ardea) -> dict[str, str]:
    """Name -> state."""
    rows = json.loads(ardea("list", "-o", "json").stdout)["topologies"]
    return {row["name"]: row["state"] for row in rows}


def healths(ardea) -> dict[str, str | None]:
    """Name -> health, in one word."""
    rows = json.loads(ardea("list", "-o", "json").stdout)["topologies"]
    return {row["name"]: row["health"] and row["health"]["state"] for row in rows}


def left_in_state(state: Path) -> list[Path]:
    return [path for path in (state / "state").rglob("*") if path.is_file()]
