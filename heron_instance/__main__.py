"""``python -m ardea.heron_instance``: one task of a topology, started by a container's supervisor."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ardea import loader, logs, parent_link
from ardea.code import Code
from ardea.config import Settings
from ardea.errors import ArdeaError, ExitCode, UserError
from ardea.heron_instance.debugging import explain_breakpoints, wait_for_debugger
from ardea.heron_instance.process import InstanceProcess
from ardea.heron_instance.wires import Addresses
from ardea.plan.definition import Definition


def main() -> int:
    """Loads the topology's file, checks that it builds what was submitted, and runs the task."""
    parent_link.attach()
    parent_link.wake_politely()
    logs.configure()
    parser = argparse.ArgumentParser(prog="ardea.heron_instance", description=__doc__)
    parser.add_argument("--definition", type=Path, required=True)
    parser.add_argument("--container", type=int, required=True)
    parser.add_argument("--task", type=int, required=True)
    parser.add_argument("--control", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--metrics", required=True)
    parser.add_argument("--debug-port", type=int, help="wait there for a debugger before anything is loaded")
    parser.add_argument("--state", type=Path, help="the folder with what opens the task's own state manager")
    args = parser.parse_args()
    try:
        definition = Definition.to_run(args.definition)
        logs.configure(Settings.of(definition.shape.config).log_format)
        logs.give_way()
        name = os.environ.get("ARDEA_NAME", f"task-{args.task}")
        explain_breakpoints(name)
        if args.debug_port is not None:
            with parent_link.beating(in_user_code=True):
                wait_for_debugger(name, args.debug_port)
        with parent_link.beating(in_user_code=True):
            code = Code.read(args.definition.parent, definition.code)
            plan = definition.rescaled(loader.load(definition.location, code).plan(definition.config))
        _compare(definition, plan.digests(), plan.digest())
        addresses = Addresses(args.control, args.data, args.metrics)
        process = InstanceProcess(definition, plan, args.task, args.container, addresses)
        if args.state is not None:
            from ardea.state.address import Access  # few tasks need the state manager, and loading it takes a while

            state = Access.read(args.state)
            process.state_address, process.state_credential = state.address, state.credential
        return parent_link.ended(process.run())
    except ArdeaError as error:
        print(f"error: {error.message}", *([f"hint: {error.hint}"] if error.hint else []), sep="\n", file=sys.stderr)  # noqa: T201
        parent_link.report(error.message.splitlines()[0])
        return parent_link.ended(ExitCode.PERMANENT)


def _compare(definition: Definition, digests: dict[str, str], digest: str) -> None:
    """Every process must build the same topology."""
    submitted = definition.shape
    if digest == submitted.digest:
        return
    names = sorted({*digests, *submitted.digests})
    first = next((n for n in names if digests.get(n) != submitted.digests.get(n)), None)
    where = f"component {first}" if first else "the topology's configuration"
    raise UserError(
        f"{definition.location} builds another topology here than was submitted: {where} differs",
        hint="building must be deterministic: no random values, no reading of clocks or of the environment",
    )


if __name__ == "__main__":
    sys.exit(main())
