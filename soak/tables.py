"""Tables in Markdown, as parts print them and as docs/reliability.md shows them."""

from collections.abc import Iterable, Mapping


def row(*cells: object) -> str:
    """
    Make a row; numbers get commas.

    Examples
    --------
    >>> row("kills", 1234)
    '| kills | 1,234 |'
    """
    return f"| {' | '.join(f'{cell:,}' if isinstance(cell, int) else str(cell) for cell in cells)} |"


def table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> str:
    """
    Make a table.

    Examples
    --------
    >>> print(table(["", "times"], [["kills", 12]]))
    |  | times |
    |---|---|
    | kills | 12 |
    """
    cells = list(head)
    return "\n".join([row(*cells), "|---" * len(cells) + "|", *(row(*each) for each in rows)])


def counted(names: Iterable[str], counts: Mapping[str, int]) -> str:
    """
    Make a table of counts, with a row for each name; what was counted under no name of these is a mistake.

    Examples
    --------
    >>> print(counted(["kills", "findings"], {"kills": 3}))
    |  | times |
    |---|---|
    | kills | 3 |
    | findings | 0 |
    """
    rows = list(names)
    if unknown := counts.keys() - set(rows):
        raise KeyError(f"no row for {', '.join(sorted(unknown))}")
    return table(["", "times"], [[name, counts.get(name, 0)] for name in rows])
