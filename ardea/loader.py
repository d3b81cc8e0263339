"""Finds the topology in an author's file, as every process does."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from functools import lru_cache
from importlib.machinery import ModuleSpec, NamespaceLoader
from pathlib import Path
from types import ModuleType

from ardea.code import Code, Finder
from ardea.errors import NotFound, UserError, printable
from ardea.topology import Topology

_SHOWN_FRAMES = 20
"""A recursion without end has a thousand, which say nothing more."""

_loaded: set[str] = set()
_importing: list[Path] = []
_ARDEA = Path(__file__).parent
"""Not resolved, as the file names of its modules are not: a checkout has links here (decision 67)."""
_PYTHONS = tuple(Path(sysconfig.get_paths()[name]).resolve() for name in ("stdlib", "platstdlib", "purelib"))


def load(target: str, code: Code | None = None) -> type[Topology]:
    """The topology that ``FILE`` or ``FILE:Class`` names; ``code``: as it was kept, not as it is in the file now.

    The file is imported under its own name, with its folder (for a file of a package: the folder of the outermost
    package) in front of the import path, as ``python FILE`` would have it.

    Raises:
        NotFound: there is no such file.
        UserError: it does not import (the message begins with the cause and shows the author's lines), it has no
            topology, or several and ``target`` does not say which.
    """
    path, wanted = _split(target)
    if code is None and not path.is_file():
        what = f"{path} is a folder" if path.is_dir() else f"there is no topology file {path}"
        file = Path(*str(path).split(".")).with_suffix(".py")  # of pkg.topo:T, as Python would have it
        meant = f": did you mean {file}:{wanted}?" if file.is_file() and wanted else ", for example wc.py:WordCount."
        raise NotFound(what, hint=f"Give FILE or FILE:Class{meant}")
    module = _import(path.resolve(), *_named(path.resolve())) if code is None else _import_kept(code)
    found = dict(_topologies(module))
    if wanted is not None:
        chosen = getattr(module, wanted, None)
        if isinstance(chosen, type) and issubclass(chosen, Topology) and chosen is not Topology:
            return chosen
        raise UserError(f"{path} has no topology {wanted!r}; it has {_names(found)}")
    if not found:
        raise UserError(
            f"{path} has no topology",
            hint="Derive a class from ardea.Topology, or keep what TopologyBuilder.build() returns in a variable.",
        )
    if len(found) > 1:
        raise UserError(f"{path} has {len(found)} topologies: {_names(found)}", hint=f"Say which: {path}:{min(found)}.")
    return next(iter(found.values()))


def kept(target: str) -> Code:
    """The code of a topology that this process has loaded, to be kept as it is now."""
    path = _split(target)[0].resolve()
    root, name = _named(path)
    own = {module: file for module, file in _of_the_author(root).items() if file.suffix == ".py"}
    return Code.of(name, root, {**own, name: path})  # that of an installed package, too


def root_of(target: str) -> Path:
    """The folder that is in front of the import path of ``FILE`` or ``FILE:Class``."""
    return _named(_split(target)[0].resolve())[0]


def forget(root: Path) -> None:
    """What this process has imported of that folder is imported anew."""
    for name in (*_of_the_author(root), *_namespaces(root)):
        del sys.modules[name]
        package, _, module = name.rpartition(".")
        if package in sys.modules:  # one whose parts lie elsewhere, too
            vars(sys.modules[package]).pop(module, None)
    importlib.invalidate_caches()


def _namespaces(root: Path) -> list[str]:
    """Folders without ``__init__.py`` that have been imported as packages, and lie in that folder alone."""
    below = _below(root)
    paths = {
        name: [Path(path).resolve() for path in module.__path__]
        for name, module in sys.modules.copy().items()
        if isinstance(getattr(module, "__loader__", None), NamespaceLoader)
    }
    return [
        name
        for name, parts in paths.items()
        if all(f"{part}".startswith(below) and not _installed(part) for part in parts)
    ]


def _below(root: Path) -> str:
    return f"{root}".rstrip(os.sep) + os.sep


def _of_the_author(root: Path) -> dict[str, Path]:
    """Files of modules in that folder, by name; not that of Python's own ``__main__``."""
    below = _below(root)
    files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.copy().items()}
    return {  # first what is quickly told: there are thousands
        name: Path(file)
        for name, file in files.items()
        if os.path.normpath(file).startswith(below) and _is_the_authors(file) and name != "__main__"
    }


def importing() -> Path | None:
    """The topology's file that is being imported by :func:`load`; None: none is."""
    return _importing[-1] if _importing else None


def _split(target: str) -> tuple[Path, str | None]:
    file, colon, name = target.rpartition(":")
    return (Path(file), name) if colon and name.isidentifier() else (Path(target), None)


def _names(found: dict[str, type[Topology]]) -> str:
    return ", ".join(sorted(found)) or "none"


def _topologies(module: ModuleType) -> Iterator[tuple[str, type[Topology]]]:
    """Those that the file itself defines, by variable, each once; what a builder made belongs to ardea.topology."""
    seen: set[int] = set()
    for name, entry in vars(module).items():
        if isinstance(entry, type) and issubclass(entry, Topology) and entry is not Topology and id(entry) not in seen:
            seen.add(id(entry))
            if entry.__module__ in (module.__name__, Topology.__module__):
                yield name, entry


def _named(path: Path) -> tuple[Path, str]:
    """The folder that is in front of the import path, and the module's name."""
    root, name = path.parent, path.stem
    if (shown := f"{path}".encode(errors="backslashreplace").decode()) != f"{path}":
        raise UserError(
            f"{shown} has bytes in its name that are no UTF-8", hint="Give the file or its folder another name."
        )
    if "." in name:
        raise UserError(f"{path} cannot be imported: {name!r} has a dot in it", hint="Give the file another name.")
    while (root / "__init__.py").is_file():
        root, name = root.parent, f"{root.name}.{name}"
    return root, name


def _import_kept(code: Code) -> ModuleType:
    finder = Finder(code)
    sys.meta_path.insert(0, finder)
    return _import(code.path, Path(code.root), code.name, finder.find_spec(code.name))


def _import(path: Path, root: Path, name: str, spec: ModuleSpec | None = None) -> ModuleType:
    """``spec``: how it is loaded, if not from its file."""
    if (present := sys.modules.get(name)) is not None:
        if Path(present.__file__ or "").resolve() == path:
            return present
        if name not in _loaded:
            raise UserError(
                f"{path} cannot be imported as {name!r}: that module is {present.__file__ or 'built into Python'}",
                hint="Give the file another name.",
            )
        del sys.modules[name]
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    spec = spec or importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UserError(f"{path} is no Python file", hint="The name of a topology's file ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _loaded.add(name)
    _importing.append(path)
    try:
        if "." in name:
            importlib.import_module(name.rpartition(".")[0])
        spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UserError(
            f"{_account(error)}\nwhile {path} was imported", hint="Correct the file; nothing was started."
        ) from error
    finally:
        _importing.pop()
    return module


def _account(error: BaseException) -> str:
    """The first cause, with the author's lines that led to it, then what followed from it."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or (None if following.__suppress_context__ else following.__context__)
    return "\nwhich led to\n".join("\n".join(_lines(each)) for each in reversed(chain))


def _lines(error: BaseException) -> Iterator[str]:
    yield from (printable(line.rstrip("\n"), most=2000) for line in traceback.format_exception_only(error))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_the_authors(frame.filename)]
    for frame in frames[:_SHOWN_FRAMES]:
        yield f"  {frame.filename}:{frame.lineno}, in {frame.name}"
        yield f"    {frame.line}"
    if len(frames) > _SHOWN_FRAMES:
        yield f"  ... and {len(frames) - _SHOWN_FRAMES:,} more"


def place_of(error: BaseException, *, authors: bool = False) -> str:
    """``file.py:12``: the author's line that led to it, or else where it was raised; empty without a traceback.

    ``authors``: no other line will do.
    """
    if isinstance(error, UserError) and error.place:
        return error.place
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if _is_the_authors(frame.filename)]
    chosen = theirs or ([] if authors else frames)
    return next((f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(chosen)), "")


@lru_cache(1000)
def is_ours(file: str) -> bool:
    """Whether it is a module of Ardea."""
    return Path(file).is_relative_to(_ARDEA)


@lru_cache(1000)
def _is_the_authors(file: str) -> bool:
    if is_ours(file):
        return False
    path = Path(file).resolve()
    return path.is_file() and not _installed(path)


def _installed(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in _PYTHONS)
