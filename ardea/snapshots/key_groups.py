"""Key groups: what moves when the number of a component's tasks changes (docs/snapshots.md).

A key belongs to the group that its hash says; a task owns a range of groups, and all keys in it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from xxhash import xxh3_64_intdigest

from ardea.errors import EncodingError, UserError
from ardea.protocol.keys import encode_key, key_hash, partition


def group_of(hashed: int, groups: int) -> int:
    """Of a key with that hash."""
    return partition(hashed, groups)


def owned_by(index: int, tasks: int, groups: int) -> range:
    """The groups of the task that is ``index`` (from 0) of so many; those of all tasks are all groups, in order."""
    return range(index * groups // tasks, (index + 1) * groups // tasks)


def owners(tasks: int, groups: int) -> list[int]:
    """The index of the task that owns each group."""
    return [index for index in range(tasks) for _ in owned_by(index, tasks, groups)]


@dataclass(frozen=True, slots=True)
class Keys:
    """Those of one task.

    ``fields``: how many the component's grouping has; a key of two or more is a tuple of their values.  ``prefix``: a
    key is one or several of such values, or a tuple that begins with them.
    """

    component: str
    index: int
    tasks: int
    groups: int
    fields: int
    prefix: bool = False

    @property
    def owned(self) -> range:
        """Its groups."""
        return owned_by(self.index, self.tasks, self.groups)

    @property
    def own(self) -> int:
        """The first whole number that is a key of this task: of what it keeps for itself, and moves as keys do."""
        return next(number for number in itertools.count() if self.group(number) in self.owned)

    def group(self, key: Any) -> int:
        """Of any task's key.

        Raises:
            EncodingError: it can be nobody's.
        """
        if self.prefix:
            parts = key[: self.fields] if isinstance(key, tuple) else (key,)
        else:
            parts = key if self.fields > 1 and isinstance(key, tuple) else (key,)
        return group_of(key_hash(parts), self.groups)

    def placed(self, key: Any) -> tuple[int, bytes]:
        """The group of any task's key, and its canonical bytes, by which all keys of a state are told apart.

        Raises:
            EncodingError: it can be nobody's.
        """
        encoded = encode_key((key,))
        if self.prefix or self.fields > 1:
            return self.group(key), encoded
        return group_of(xxh3_64_intdigest(encoded), self.groups), encoded

    def check(self, state: str, key: Any) -> int:
        """The group of a key of this task.

        Raises:
            UserError: the key is another task's, or can be nobody's.
        """
        try:
            group = self.group(key)
        except EncodingError as error:
            raise UserError(f"state {state!r}: {error.message}", hint=error.hint) from error
        if group in self.owned:
            return group
        owner = owners(self.tasks, self.groups)[group]
        raise UserError(
            f"state {state!r}: the key {_short(key)} is one of {self.component}-{owner}, and this is "
            f"{self.component}-{self.index}",
            hint="The key is what the fields grouping names: the value of one field, a tuple of the values of several.",
        )


class PairKeys(Keys):
    """Those of timers and windows, (key, what tells the parts of a key apart): they belong to their key."""

    @classmethod
    def of(cls, keys: Keys) -> PairKeys:
        """For that task."""
        return cls(keys.component, keys.index, keys.tasks, keys.groups, keys.fields, keys.prefix)

    def group(self, key: Any) -> int:
        """As of :class:`Keys`."""
        return Keys.group(self, key[0])

    def placed(self, key: Any) -> tuple[int, bytes]:
        """As of :class:`Keys`."""
        return self.group(key), encode_key((key,))

    def check(self, state: str, key: Any) -> int:
        """As of :class:`Keys`."""
        plain = Keys(self.component, self.index, self.tasks, self.groups, self.fields, self.prefix)
        return plain.check(state, key[0])


def _short(key: Any) -> str:
    text = repr(key)
    return text if len(text) <= 100 else f"{text[:100]}…"
