"""Settings of a client library that stand in a configuration, as ``kafka.*`` and ``postgres.*`` do."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea.errors import ConfigError


def client_settings(config: Mapping[str, Any], prefix: str, refused: Mapping[str, str]) -> dict[str, Any]:
    """Those whose keys begin with ``prefix``, without it; ``env:NAME`` and ``file:PATH`` stand for what is there.

    Raises:
        ConfigError: one of them is ``refused``, with the reason that stands there, or cannot be read.
    """
    found: dict[str, Any] = {}
    for key, value in config.items():
        if key.startswith(prefix):
            name = key.removeprefix(prefix)
            if name in refused:
                raise ConfigError(f"{key} is set by Ardea: {refused[name]}", hint="Remove it from the configuration.")
            found[name] = _resolved(key, value)
    return found


def _resolved(key: str, value: Any) -> Any:
    """The message never has it."""
    if isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, str):  # a client would take a list's or a dictionary's text as it prints
        raise ConfigError(f"{key} is a text, a number or a truth value, not of type {type(value).__name__}")
    kind, colon, where = value.partition(":")
    if colon and kind == "env":
        if where not in os.environ:
            raise ConfigError(f"{key} is to be read from the variable {where}, which this process does not have")
        return os.environ[where]
    if colon and kind == "file":
        try:
            return Path(where).read_text().removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{key} is to be read from a file: {error}") from error
    return value
