"""Columns of text, for terminals and logs: as wide as their cells, never cut to a window."""

from __future__ import annotations

import io
from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> list[str]:
    """Lines of cells in columns that are two blanks apart.

    Args:
        rows: equally many cells each; the first row holds the heads.
        left: indices of the columns that are aligned left, from the end where negative; the others
            are aligned right, as numbers are.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    number = len(rows[0])
    aligned_left = {index % number for index in left}
    grid = Table.grid(padding=(0, 2))
    for index in range(number):
        grid.add_column(justify="left" if index in aligned_left else "right", no_wrap=True)
    for row in rows:
        grid.add_row(*map(Text, row))
    text = io.StringIO()
    Console(file=text, width=1 << 16, color_system=None).print(grid)
    return [line.rstrip() for line in text.getvalue().splitlines()]
