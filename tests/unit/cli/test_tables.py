"""Tables on terminals of any width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ardea.cli.tables import fitted

COLUMNS = ("Task", "Container", "Emitted")
LEAST = ("Container", "Emitted")
ROWS = [("numbers-0", "1", "123,456,789"), ("a-long-name-0", "12", "7")]


def lines(width: int) -> list[str]:
    console = Console(width=width)
    with console.capture() as shown:
        console.print(fitted(COLUMNS, ROWS, width, least=LEAST, numbers=("Emitted",)), crop=False)
    return [line.rstrip() for line in shown.get().splitlines()]


def test_what_fits_is_shown():
    assert lines(80) == [
        "Task           Container      Emitted",
        "numbers-0      1          123,456,789",
        "a-long-name-0  12                   7",
    ]
    assert lines(36) == [
        "Task          Container     Emitted",
        "numbers-0     1         123,456,789",
        "a-long-name-0 12                  7",
    ]


def test_columns_go_in_their_order_and_a_caption_names_them():
    assert lines(34) == [
        "Task              Emitted",
        "numbers-0     123,456,789",
        "a-long-name-0           7",
        "no room for Container",
    ]


@given(st.integers(1, 60))
def test_no_cell_is_ever_cut_or_wrapped(width):
    task, *_ = zip(*(line.split() for line in lines(width)[:3]), strict=False)
    assert task == ("Task", "numbers-0", "a-long-name-0")
    assert ("123,456,789" in " ".join(lines(width))) == ("Emitted" in lines(width)[0])


def test_brackets_are_no_markup():
    console = Console(width=80)
    with console.capture() as shown:
        console.print(fitted(("Name",), [("[red]",)], 80))
    assert "[red]" in shown.get()
