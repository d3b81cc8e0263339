"""How a topology begins from a savepoint: whether it can, and the copy of it in its own store (docs/snapshots.md)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ardea.errors import ArdeaError, StateError, UserError
from ardea.plan.definition import Begins
from ardea.plan.keyed import ANOTHER_NAME, OTHER_KEYS, keyed_components, other_keys
from ardea.plan.logical import LogicalPlan
from ardea.snapshots.manifest import Manifest, encode_manifest, manifest_name
from ardea.snapshots.place import Files, place_at
from ardea.snapshots.savepoint import NUMBER, Savepoint, contents, read

_SAME = {"Timers": "KeyedState"}
"""Kinds of states whose files are those of another kind."""


class Beginning:
    """One topology's.  One thread copies; any other may ask how far that is, and give it up.

    ``copied``: bytes, of ``size``, which is 0 before the savepoint was looked at.
    """

    def __init__(self, begins: Begins, plan: LogicalPlan, groups: int) -> None:
        """Touches nothing.  ``groups``: among which the topology divides its keys."""
        self.folder = begins.folder
        self.copied = self.size = 0
        self.given_up = False
        self._begins, self._plan, self._groups = begins, plan, groups

    @property
    def says(self) -> str:
        """How far it is, for people."""
        return f"the savepoint {self.folder} is not copied yet, but for {self.copied:,} of {self.size:,} bytes"

    def look(self) -> Savepoint:
        """What lies there, less what the topology leaves behind; files are not looked at.

        Raises:
            NotFound: no savepoint.
            StateError: it is not whole, or cannot be read.
            UserError: the topology cannot begin from it.
        """
        with self._blaming():
            savepoint = read(place_at(self.folder))
            self._check(savepoint)
            gone = savepoint.components.keys() - {component.name for component in self._plan}
            return savepoint.without(gone)

    def copy(self, store: Files) -> Manifest:
        """Into the topology's own store; the list of its files comes last.  Can be repeated, and by two at a time.

        Raises:
            NotFound, StateError, UserError: as for :meth:`look`, and a file is missing, damaged or cannot be written.
        """
        manifest = self.look().manifest
        self.copied, self.size = 0, manifest.bytes
        with self._blaming():
            for _, file, content in contents(place_at(self.folder), manifest):
                if self.given_up:
                    raise StateError("it took too long to copy")
                store.write(file.name, content)
                self.copied += file.bytes
            store.write(manifest_name(NUMBER), [encode_manifest(manifest)])
        return manifest

    def _check(self, savepoint: Savepoint) -> None:
        """Raises UserError."""
        name = self._plan.name
        if savepoint.groups != self._groups:
            raise UserError(
                f"its keys are divided among {savepoint.groups} groups, and {name} has topology.key.groups = "
                f"{self._groups}",
                hint=f"submit it with --set topology.key.groups={savepoint.groups}",
            )
        tasks = {component.name: component.tasks for component in self._plan}
        lost = [f"component {component}" for component in sorted(savepoint.components.keys() - tasks.keys())]
        others, bound = [], set()
        for component in self._plan:
            for state, was in sorted(savepoint.states.get(component.name, {}).items()):
                becomes = component.states.get(state)
                if becomes is None:
                    lost.append(f"state {component.name}.{state}")
                elif _SAME.get(becomes, becomes.partition("(")[0]) != was:
                    others.append(f"{component.name}.{state} was a {was} and is a {becomes}")
                elif was == "TaskState":
                    bound.add(component.name)
        if others:
            raise UserError(
                f"{'; '.join(others)}: what is stored cannot be read so", hint="give the new state another name"
            )
        if moved := other_keys(savepoint.keyed, keyed_components(self._plan)):
            raise UserError(f"{'; '.join(moved)}: {OTHER_KEYS}", hint=ANOTHER_NAME)
        gone = [part for part in savepoint.manifest.parts.values() if part.bound and part.component in bound]
        if names := [f"{each.component}-{each.index}" for each in gone if each.index >= tasks[each.component]]:
            raise UserError(
                f"{', '.join(sorted(names))} would not be there, with a TaskState that no other task can have",
                hint="submit it with as many tasks of that component, or keep positions in a ListState",
            )
        if lost and not self._begins.drop_state:
            raise UserError(
                f"it has the {', the '.join(lost)}, which {name} does not have",
                hint="--drop-state begins without what that holds; or give back the former name.  A state that "
                "initialize() makes by context.keyed_state() is not known before: it is taken over even so",
            )

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        blamed = f"the savepoint {self.folder}"
        try:
            yield
        except ArdeaError as error:
            raise type(error)(f"{blamed}: {error.message}", hint=error.hint) from error
        except OSError as error:
            raise StateError(f"{blamed}: {error.strerror or error}") from error
