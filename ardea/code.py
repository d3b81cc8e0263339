"""The author's code as it was when it was submitted: what becomes of the files later is for the next version.

Kept are the modules that a topology's file has brought from its own folder, the one in front of the import path.  A
task imports those as they were, under the paths of the author's files.  Whatever else it imports is read as ever.
"""

from __future__ import annotations

import hashlib
import importlib.util
import linecache
from collections.abc import Mapping
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import Any, Self

import msgspec

from ardea.errors import StateError

FOLDER = "code"


class Source(msgspec.Struct, frozen=True, array_like=True):
    """A module's file, and what was in it."""

    path: str
    text: bytes


class Code(msgspec.Struct, frozen=True):
    """``name``: of the topology's module.  ``root``: the folder in front of the import path.  ``modules``: by name."""

    name: str
    root: str
    modules: dict[str, Source]

    @classmethod
    def of(cls, name: str, root: Path, files: Mapping[str, Path]) -> Self:
        """Reads the files of modules that have been imported."""
        modules = {module: Source(str(path), path.read_bytes()) for module, path in sorted(files.items())}
        return cls(name, str(root), modules)

    @property
    def path(self) -> Path:
        """The topology's file."""
        return Path(self.modules[self.name].path)

    @property
    def digest(self) -> str:
        """What this version is called."""
        return hashlib.blake2b(msgspec.msgpack.encode(self), digest_size=8).hexdigest()

    def write(self, folder: Path) -> None:
        """Keeps it with the topology of that folder, beside its other versions."""
        path = folder / FOLDER / self.digest
        path.parent.mkdir(exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(msgspec.msgpack.encode(self))
        new.rename(path)

    @classmethod
    def read(cls, folder: Path, digest: str) -> Self | None:
        """What was written there; None: this version is kept elsewhere, or nowhere.  StateError if it is damaged."""
        path = folder / FOLDER / digest
        try:
            return msgspec.msgpack.decode(path.read_bytes(), type=cls) if digest else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise StateError(
                f"the submitted code in {path} cannot be read: {error}", hint="submit the topology again"
            ) from error


class Finder:
    """Finds the kept modules whose files have changed, or are gone; the others are loaded as any module is.

    Of ``sys.meta_path``.  It is not derived from importlib.abc, which would load 1 MB into each task.
    """

    def __init__(self, code: Code) -> None:
        self._modules = code.modules

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """See ``importlib.abc.MetaPathFinder``."""
        kept = self._modules.get(fullname)
        if kept is None or _is_there(kept):
            return None
        return importlib.util.spec_from_file_location(fullname, kept.path, loader=_Loader(fullname, kept))


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, source: Source) -> None:
        super().__init__(fullname, source.path)
        self._source = source

    def path_stats(self, path: str) -> Any:
        raise OSError(f"{path} is another one by now, and so is its byte code")

    def get_data(self, path: str | bytes) -> bytes:
        if path != self._source.path:
            return Path(str(path)).read_bytes()
        # Tracebacks and inspect.getsource show what runs, and not what is in the file now.
        text = importlib.util.decode_source(self._source.text)
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        return self._source.text


def _is_there(kept: Source) -> bool:
    try:
        return Path(kept.path).read_bytes() == kept.text
    except OSError:
        return False
