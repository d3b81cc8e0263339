"""The files of the page, as they lie in the package: read once, and served to anybody."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).with_name("page")
TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
"""Files with other endings are not served."""
_INLINE = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_TEXT = (".css", ".html", ".js", ".json", ".svg", ".txt")


@dataclass(frozen=True, slots=True)
class File:
    """One file; ``small`` is its gzip, None where that saves nothing."""

    body: bytes
    small: bytes | None
    type: str
    tag: str


def read(folder: Path = FOLDER) -> dict[str, File]:
    """By path; ``/`` is ``index.html``.  Hidden files are left out."""
    files = {
        f"/{path.relative_to(folder).as_posix()}": _file(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in TYPES and path.is_file() and not path.name.startswith(".")
    }
    if (index := files.get("/index.html")) is not None:
        files["/"] = index
    return files


def inline(files: Mapping[str, File]) -> str:
    """The scripts in ``index.html`` itself, as a Content-Security-Policy names them."""
    found = _INLINE.findall(files["/"].body) if "/" in files else []
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" for script in found)


def _file(path: Path) -> File:
    body = path.read_bytes()
    small = gzip.compress(body, mtime=0) if path.suffix in _TEXT else body
    tag = hashlib.blake2b(body, digest_size=12).hexdigest()
    return File(body, small if len(small) < len(body) else None, TYPES[path.suffix], f'"{tag}"')
