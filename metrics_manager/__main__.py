"""``python -m ardea.metrics_manager``: the metrics manager of one container."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ardea import logs, parent_link
from ardea.config import Settings
from ardea.errors import ArdeaError
from ardea.metrics_manager.process import MetricsManagerProcess
from ardea.plan.definition import Definition


def main() -> int:
    """Runs the metrics manager."""
    parent_link.attach()
    logs.configure()
    parser = argparse.ArgumentParser(prog="ardea.metrics_manager", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--container", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--keys", type=Path, help="the folder with the container's secret key")
    parser.add_argument("--last-scrape", type=float, metavar="SECONDS", help="stay so long for those who scrape")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        logs.configure(Settings.of(definition.shape.config).log_format)
        process = MetricsManagerProcess(
            definition, args.container, args.folder, args.address, args.host, args.keys, args.last_scrape
        )
        return parent_link.ended(process.run())
    except ArdeaError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201
        parent_link.report(error.message.splitlines()[0])
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
