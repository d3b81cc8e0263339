"""Tables for people: a column that has no room on the terminal is left out whole, and nothing is cut or wrapped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from ardea.errors import escaped

NOTHING: Mapping[int, str] = {}


def fitted(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    least: Sequence[str] = (),
    numbers: Collection[str] = (),
    styles: Mapping[int, str] = NOTHING,
    title: str | None = None,
    caption: bool = True,
) -> Table:
    """A table of those columns that fit.

    Args:
        columns: their titles.
        rows: a cell for each column; each is one line.
        width: of the terminal.
        least: titles in the order in which they are left out; what is not among them stays, however narrow it is.
        numbers: titles whose cells end below one another.
        styles: of rows, counted from 0, that do not look like the others.
        title: what stands above.
        caption: whether the columns that have no room are named.
    """
    rows = [[escaped(cell).replace("\n", "\\n") for cell in row] for row in rows]
    widths = {name: max(map(cell_len, (name, *(row[i] for row in rows)))) for i, name in enumerate(columns)}
    shown, left_out = list(columns), []
    gap = 2 if _width(widths, shown, 2) <= width else 1
    for name in least:
        if _width(widths, shown, gap) <= width:
            break
        shown.remove(name)
        left_out.append(name)
    table = Table(
        title=title,
        title_justify="left",
        caption=f"no room for {', '.join(left_out)}" if left_out and caption else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
        padding=(0, gap, 0, 0),
        width=_width(widths, shown, gap),  # its own: where the terminal is too narrow even so, the terminal wraps
    )
    for name in shown:
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=True)
    kept = [i for i, name in enumerate(columns) if name in shown]
    for number, row in enumerate(rows):
        table.add_row(*(Text(row[i]) for i in kept), style=styles.get(number))
    return table


def _width(widths: dict[str, int], shown: Sequence[str], gap: int) -> int:
    return sum(widths[name] for name in shown) + gap * (len(shown) - 1)
