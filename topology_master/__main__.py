"""``python -m ardea.topology_master``: the master of one topology."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ardea import logs, parent_link
from ardea.config import Settings
from ardea.errors import ArdeaError
from ardea.plan.definition import Definition
from ardea.topology_master.process import MasterProcess, read_token


def main() -> int:
    """Runs the master."""
    parent_link.attach()
    logs.configure()
    parser = argparse.ArgumentParser(prog="ardea.topology_master", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="the topology's folder, which holds the token")
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--keys", type=Path, help="the folder with the container's secret key")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        logs.configure(Settings.of(definition.shape.config).log_format)
        process = MasterProcess(definition, args.host, read_token(args.folder), args.metrics, keys=args.keys)
        return parent_link.ended(process.run())
    except ArdeaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        parent_link.report(error.message.splitlines()[0])
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
