"""The options of ``update``, and what becomes of them, wherever the topology runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from typing import Any

import typer

from ardea import config, loader
from ardea.plan import LogicalPlan
from scheduler.update import Change


def asked(parallelism: list[str] | None, settings: list[str] | None, *, moving: bool) -> Change:
    """What the options mean, but for a new version."""
    tasks = dict(map(_count, parallelism or ()))
    return Change(parallelism=tasks, overrides=config.parse(settings or ()), moves_keys=moving)


def build(target: str, overrides: Mapping[str, Any]) -> LogicalPlan:
    """What an author's file builds; whatever it prints while it is imported is no data of ours."""
    with contextlib.redirect_stdout(sys.stderr):
        return loader.load(target).plan(overrides)


def _count(text: str) -> tuple[str, int]:
    component, colon, number = text.rpartition(":")
    if not (colon and component and number.isdecimal()):
        raise typer.BadParameter(f"{text!r} is not NAME:N", param_hint="--component-parallelism")
    return component, int(number)
