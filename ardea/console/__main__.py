"""``python -m ardea.console``: the console of one place as a service of its own, such as a Deployment.

docs/console.md, "As a service", has the arguments.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ardea.errors import ArdeaError, UserError

PORT = 8080


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    given = _parser().parse_args(arguments)
    try:
        _serve(given)
    except ArdeaError as error:
        sys.stderr.write(f"error: {error.message}\n" + (f"  hint: {error.hint}\n" if error.hint else ""))
        return error.exit_code
    return 0


def _serve(given: argparse.Namespace) -> None:
    try:
        from ardea.console import serving  # an image without the extra has to say so
    except ModuleNotFoundError as error:
        raise UserError(
            f"the console needs {error.name}, which is not installed", hint="pip install 'ardea[console]'"
        ) from error
    from ardea.console.prometheus import Prometheus
    from ardea.console.tokens import Hosts, Tokens
    from ardea.scheduler import registry

    if given.tokens is None:
        raise UserError(
            "--tokens is not given", hint="a folder with the files `view` and, for those who may act, `act`"
        )
    tokens = Tokens.read(Path(given.tokens))
    prometheus = Prometheus(given.prometheus, given.prometheus_token) if given.prometheus else None
    kind = registry.load(given.scheduler)
    said = {"namespace": given.namespace, "state": given.state}
    options = {name: said[name] for name in kind.finds_by if said.get(name)}
    with serving.listen(given.listen, given.port) as opened:
        place = registry.Place(given.scheduler, options)
        serving.serve(place, opened, tokens, Hosts(given.host), _ready, prometheus)


def _ready() -> None:
    sys.stderr.write("the console answers\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m ardea.console", description="The console as a service.")
    env = os.environ
    parser.add_argument("--scheduler", default=env.get("ARDEA_CONSOLE_SCHEDULER", "kubernetes"), metavar="NAME")
    parser.add_argument("-n", "--namespace", default=env.get("ARDEA_NAMESPACE"))
    parser.add_argument("--state", default=env.get("ARDEA_STATE"), help="of the scheduler local", metavar="DIR")
    parser.add_argument("--tokens", type=Path, default=env.get("ARDEA_CONSOLE_TOKENS"), metavar="DIR")
    parser.add_argument("--listen", default="0.0.0.0", metavar="ADDRESS")  # noqa: S104 -- of a pod
    parser.add_argument("--port", type=int, default=PORT)
    hosts = env.get("ARDEA_CONSOLE_HOSTS", "").split()
    parser.add_argument("--host", action="append", default=hosts, metavar="NAME", help="repeatable")
    parser.add_argument("--prometheus", default=env.get("ARDEA_CONSOLE_PROMETHEUS"), metavar="URL")
    token = env.get("ARDEA_CONSOLE_PROMETHEUS_TOKEN") or None
    parser.add_argument("--prometheus-token", type=Path, default=token, metavar="FILE")
    return parser


if __name__ == "__main__":
    sys.exit(main())
