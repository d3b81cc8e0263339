"""``ardea init``: the folder of a project with one topology, its tests, and what goes around it."""

from __future__ import annotations

import importlib.resources
import importlib.util
import keyword
import re
import sys
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from ardea import __version__
from ardea.cli import console
from ardea.errors import Conflict, UserError

FILES = {
    "topology.py": "{module}.py",
    "test_topology.py": "tests/test_{module}.py",
    "pyproject.toml": "pyproject.toml",
    "launch.json": ".vscode/launch.json",
    "Dockerfile": "Dockerfile",
    "values.yaml": "values.yaml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
}
"""Of the template, and where each lies in the project."""


@console.reports
def init(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The project's name, or a path that ends in it: the folder to make.")
    ],
) -> None:
    """Make the folder of a new project: a topology, and all around it.

    There are tests, pyproject.toml, settings for VS Code, a Dockerfile, values for the chart and a README.
    """
    folder = Path(name)
    module, title = names(folder.name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict(f"{folder} exists already; nothing was written", hint="choose another name, or an empty folder")
    template = importlib.resources.files("ardea.cli") / "template"
    values = {"name": folder.name, "module": module, "title": title, "version": __version__}
    for source, target in FILES.items():
        path = folder / target.format(module=module)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template((template / f"{source}.txt").read_text()).substitute(values))
    console.say(f"{folder} has a topology, {title}; next: cd {folder} && ardea run {module}.py --logs count")


def names(project: str) -> tuple[str, str]:
    """The module and the topology of a project: ``word-count`` has ``word_count.py`` with ``WordCount``.

    Raises:
        UserError: Python could not import a module of that name, or has one already.
    """
    module = project.replace("-", "_")
    title = "".join(part[:1].upper() + part[1:] for part in module.split("_"))
    hint = "letters, digits, - and _, beginning with a letter, such as word-count"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", module) or keyword.iskeyword(module) or not title.isidentifier():
        raise UserError(f"{project!r} is no name for a project; nothing was written", hint=hint)
    if module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        raise UserError(
            f"{project!r} is no name for a project: Python here has a module {module} already; nothing was written",
            hint=f"choose another name, such as {project}-topology",
        )
    return module, title
