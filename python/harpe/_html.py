"""HTML for notebooks. All text is escaped."""

import html
from collections.abc import Iterable, Sequence


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    lines = ["<table>"]
    if head:
        lines.append(_row("th", head))
    lines += [_row("td", row) for row in rows]
    return "\n".join([*lines, "</table>"])


def _row(tag: str, cells: Sequence[object]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(print_cell(cell))}</{tag}>"
                            for cell in cells) + "</tr>"


def print_cell(value: object) -> str:
    """A number with grouped digits, a list by its elements, None as nothing."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    if isinstance(value, Sequence):
        return ", ".join(print_cell(element) for element in value)
    return str(value)


def frame(page: str, height: int = 640) -> str:
    """A page inside an iframe; its script cannot access the surrounding page."""
    return (f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(page, quote=True)}" '
            f'width="100%" height="{height}" style="border:0"></iframe>')
