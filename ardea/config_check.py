"""What an author or operator has written as configuration, checked and in its normal form.

Keys that begin with ``topology.`` or ``heron.`` belong to the engine: an unknown one is an error.  All others are
the author's, or those of Spark, which alone knows them.  They pass through as they are, provided that every process
builds them equally and, of ``kafka.*`` and ``postgres.*``, that no secret stands in them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ardea import units
from ardea.config import KEYS
from ardea.config_keys import ALIASES, REPLACED
from ardea.errors import ConfigError, is_text

RESERVED = ("topology.", "heron.")
_SECRET = re.compile(
    r"(kafka|postgres)\..*(pas+(w|phrase)|secret|key\.pem|oauthbearer\.config|jaas\.config).*"
)  # misspelt, too


def check(config: Any, where: str, *, component: bool = False) -> tuple[dict[str, Any], list[str]]:
    """Like :func:`validate`, but returns what is right and a sentence for each thing that is wrong."""
    if not isinstance(config, Mapping):
        return {}, [f"{where}: a configuration is a dict of keys and values, not {config!r}"]
    normal: dict[str, Any] = {}
    written: dict[str, str] = {}
    problems = []
    for name, value in config.items():
        try:
            key, normal_value = _normalise(name, value, component)
            if key in written and normal[key] != normal_value:
                raise ValueError(f"{name!r} and {written[key]!r} mean the same, yet differ; set one of them")
        except ValueError as error:
            problems.append(f"{where}: {error}")
        else:
            normal[key] = normal_value
            written[key] = name
    return normal, problems


def validate(config: Mapping[str, Any], where: str, *, component: bool = False) -> dict[str, Any]:
    """The configuration in its normal form: aliases resolved, sizes as bytes, maps as dicts.

    Args:
        config: what an author or operator wrote.
        where: begins each message, for example ``component 'split'``.
        component: refuse the keys that only a whole topology can have.

    Raises:
        ConfigError: keys or values are wrong; the message has one line for each.
    """
    normal, problems = check(config, where, component=component)
    if problems:
        raise ConfigError("\n".join(problems), hint="`ardea config` prints every key with its type and default.")
    return normal


def stored(overrides: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Like :func:`validate`, of what wins over a topology's own configuration, as a definition gives it back.

    All processes build the same with it: a tuple is a list, the member of an enumeration its value.
    """
    normal = validate(overrides, where)
    return msgspec.msgpack.decode(msgspec.msgpack.encode(normal), type=dict[str, Any])


def parse(assignments: Iterable[str]) -> dict[str, Any]:
    """``key=value`` texts, as the command line has them: JSON where that is what the key takes, else text.

    Raises:
        ConfigError: one of them has no ``=``.
    """
    config: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, written = assignment.partition("=")
        if not equals or not name:
            raise ConfigError(f"--set takes key=value, not {assignment!r}")
        try:
            value = msgspec.json.decode(written)
        except ValueError:
            value = written
        known = KEYS.get(name)
        config[name] = written if known is not None and known.type == "text" else value
    return config


def _normalise(name: Any, value: Any, component: bool) -> tuple[str, Any]:
    if not isinstance(name, str) or not is_text(name):
        raise ValueError(f"configuration keys are texts that UTF-8 has, not {name!r}")
    alias = ALIASES.get(name)
    key = KEYS.get(alias.key if alias else name)
    if key is None:
        if name.startswith(RESERVED):
            raise ValueError(f"unknown configuration key {name!r}{_suggestion(name)}")
        if _SECRET.fullmatch(name) and not (isinstance(value, str) and value.startswith(("env:", "file:"))):
            raise ValueError(f"{name!r} is a secret, which must not stand here: write 'env:VARIABLE' or 'file:PATH'")
        return name, _accept(units.plain, name, value)
    if component and key.scope not in ("component", "both"):
        raise ValueError(f"{name!r} belongs to the topology's configuration and cannot be set for one component")
    if not component and key.scope == "component":
        raise ValueError(f"{name!r} belongs to the configuration of a component, not of the topology")
    if value is None and key.default is None:
        return key.name, None
    accepted = _accept(key.check, name, value)
    return key.name, accepted * alias.factor if alias else accepted


def _accept(accept: Callable[[Any], Any], name: str, value: Any) -> Any:
    try:
        return accept(value)
    except ValueError as error:
        raise ValueError(f"{name!r} takes {error}, not {units.shown(value)} ({type(value).__name__})") from None


def _suggestion(name: str) -> str:
    if name in REPLACED:
        return f"; {REPLACED[name]}"
    nearest = difflib.get_close_matches(name, [*KEYS, *ALIASES], n=1)
    return f"; did you mean {nearest[0]!r}?" if nearest else "; `ardea config` prints every key"
