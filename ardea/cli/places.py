"""Where a topology runs: on this machine, or on a cluster.  One command line for both."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, get_type_hints

from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.scheduler import Context, Kubeconfig, Namespace

P = ParamSpec("P")

_OPTIONS = {"namespace": Namespace, "context": Context, "kubeconfig": Kubeconfig}


def also_on_kubernetes(remote: Callable[..., None]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Adds the options that name a cluster to a verb; with any of them, ``remote`` does it.

    ``remote`` takes the cluster, and the verb's parameters but for ``state``.
    """

    def decorate(verb: Callable[P, None]) -> Callable[P, None]:
        hints = get_type_hints(verb, include_extras=True)
        own = [p.replace(annotation=hints[p.name]) for p in inspect.signature(verb).parameters.values()]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in _OPTIONS.items()
        ]

        @functools.wraps(verb)
        def either(*args: P.args, **kwargs: P.kwargs) -> None:
            where: dict[str, Any] = {name: kwargs.pop(name, None) for name in _OPTIONS}
            if not any(where.values()):
                verb(*args, **kwargs)
                return
            kwargs.pop("state", None)
            cluster = Cluster.connect(**where)
            try:
                remote(cluster, *args, **kwargs)
            finally:
                cluster.close()

        either.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        either.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
        return either

    return decorate
