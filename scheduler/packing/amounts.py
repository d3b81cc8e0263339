"""Resources as people read them."""

from __future__ import annotations

from ardea.plan import Resource
from ardea.plan.resource import MIB

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("B", "KB", "MB", "GB", "TB")


def format_bytes(amount: int) -> str:
    """Whole MiB in powers of 1024 (``1.5 GiB``), all else in powers of 1000, as it was written (``25 GB``)."""
    base, units = (1024, _BINARY) if amount % MIB == 0 else (1000, _DECIMAL)
    value, unit = float(amount), 0
    while value >= base and unit < len(units) - 1:
        value, unit = value / base, unit + 1
    return f"{_short(value, 2)} {units[unit]}"


def format_cpu(cores: float) -> str:
    """Cores without the noise of binary fractions: ``0.3``, ``12``."""
    return _short(cores, 3)


def format_resource(resource: Resource) -> str:
    """All three on one line: ``1.5 cpu, 768 MiB RAM, 2 GiB disk``."""
    return f"{format_cpu(resource.cpu)} cpu, {format_bytes(resource.ram)} RAM, {format_bytes(resource.disk)} disk"


def _short(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".")
