"""``python -m ardea.stream_manager``: the stream manager of one container."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ardea import logs, parent_link
from ardea.config import Settings
from ardea.errors import ArdeaError
from ardea.plan.definition import Definition
from ardea.stream_manager.container_setup import ContainerSetup
from ardea.stream_manager.process import StreamManagerProcess


def main() -> int:
    """Runs the manager."""
    parent_link.attach()
    parent_link.wake_politely()
    logs.configure()
    parser = argparse.ArgumentParser(prog="ardea.stream_manager", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--container", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--control", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--keys", type=Path, help="the folder with the container's secret key")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        logs.configure(Settings.of(definition.shape.config).log_format)
        setup = ContainerSetup(args.container, args.folder, args.control, args.data, args.metrics, args.host, args.keys)
        return parent_link.ended(StreamManagerProcess(definition, setup).run())
    except ArdeaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        parent_link.report(error.message.splitlines()[0])
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
