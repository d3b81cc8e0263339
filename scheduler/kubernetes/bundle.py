"""The author's files in one archive: packed by the submitter, unpacked in each pod."""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import platform
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePath

from ardea.errors import NotFound, UserError, is_text, printable
from ardea.scheduler.kubernetes.manifest_inputs import MAX_BYTES, Bundle

LARGEST_SHOWN = 5
_PATTERNS = "patterns such as 'data/*.csv'"


def import_root(file: Path) -> Path:
    """The folder that is in front of the import path when ``file`` is loaded."""
    root = file.resolve().parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return root


def pack(file: Path, include: Iterable[str] = ()) -> Bundle:
    """All Python files below the import root of ``file``, and what ``include`` names (patterns below that root).

    Left out are hidden folders, ``__pycache__``, virtual environments, and files and folders that cannot be read, or
    whose name is no UTF-8.

    Raises:
        NotFound: a pattern matches nothing.
        UserError: it is none, or names a file that cannot be read or packed, or the archive is too large.
    """
    root = import_root(file)
    chosen = {path.relative_to(root): path for path in _python_files(root)}
    for pattern in include:
        chosen.update((path.relative_to(root), path) for path in _matching(root, pattern))
    plain = io.BytesIO()
    with zipfile.ZipFile(plain, "w") as archive:  # stored: the whole is compressed at once, and smaller
        for name, path in sorted(chosen.items()):
            archive.writestr(zipfile.ZipInfo(str(name)), path.read_bytes())
    data = lzma.compress(plain.getvalue())
    if len(data) > MAX_BYTES:
        largest = sorted(chosen.items(), key=lambda item: -item[1].stat().st_size)[:LARGEST_SHOWN]
        shown = ", ".join(f"{name} ({path.stat().st_size >> 10:,} KiB)" for name, path in largest)
        raise UserError(
            f"the {len(chosen):,} files of {root} take {len(data) >> 10:,} KiB compressed, and {MAX_BYTES >> 10} KiB "
            f"fit into an object of Kubernetes; the largest are {shown}; nothing was submitted",
            hint="put the code into an image (FROM ardea) and say --image IMAGE --path-in-image PATH",
        )
    return Bundle(data, python_version())


def unpack(data: bytes, folder: Path) -> None:
    """The files of a bundle; can be repeated."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(lzma.decompress(data))) as archive:
        archive.extractall(folder)


def check_python(wanted: str) -> None:
    """Refuses to run what was built and checked with another Python; empty: there was no bundle.

    Raises:
        UserError: the minor version differs.
    """
    if wanted and wanted != python_version():
        raise UserError(
            f"the topology's files were submitted with Python {wanted}, and this image has {python_version()}; "
            "values and digests may differ, so it is not started",
            hint=f"submit with Python {python_version()}, or with an image that has {wanted}",
        )


def python_version() -> str:
    """``3.11``."""
    return ".".join(platform.python_version_tuple()[:2])


def _matching(root: Path, pattern: str) -> list[Path]:
    given = PurePath(pattern)
    try:
        if not given.parts or given.is_absolute() or ".." in given.parts:
            raise ValueError("it is empty, absolute, or has '..' in it")
        found = [path for path in root.glob(pattern) if path.is_file()]
    except ValueError as error:
        raise UserError(
            f"--include {pattern!r} is no pattern for files below {root}: {error}; nothing was submitted",
            hint=_PATTERNS,
        ) from None
    for path in found:
        if not is_text(str(path.relative_to(root))):
            raise UserError(
                f"--include {pattern}: {printable(path)} has a name that is no UTF-8; nothing was submitted",
                hint="rename it, or leave it out of the pattern",
            )
        if not os.access(path, os.R_OK):
            raise UserError(
                f"--include {pattern}: {path} may not be read; nothing was submitted",
                hint="give this account the right to read it, or leave it out of the pattern",
            )
    if not found:
        raise NotFound(f"--include {pattern}: {root} has no such file", hint=_PATTERNS)
    return found


def _python_files(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.iterdir()):
        if not is_text(path.name):
            continue  # no import statement could name it
        if path.is_dir():
            if not (path.name.startswith(".") or path.name == "__pycache__" or path.is_symlink()):
                with contextlib.suppress(PermissionError):  # nobody could import from there, either
                    found += [] if (path / "pyvenv.cfg").exists() else _python_files(path)
        elif path.suffix == ".py" and path.is_file() and os.access(path, os.R_OK):
            found.append(path)
    return found
