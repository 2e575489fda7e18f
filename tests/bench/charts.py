"""Bar charts as SVG: one bar a server, the floor in grey, ours in blue, others in orange."""

from html import escape

WIDTH, BAR, GAP, LABEL = 820, 20, 8, 330


def bars(title, rows, unit):
    """A row has `server`, `value` and optionally `lowest` and `highest`."""
    most = max(row.get("highest", row["value"]) for row in rows) or 1
    scale = (WIDTH - LABEL - 110) / most
    height = 56 + len(rows) * (BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13" role="img" aria-label="{escape(title)}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="26" font-size="15" font-weight="bold" fill="#1f2328">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        parts += bar(row, 44 + number * (BAR + GAP), scale, unit)
    return "\n".join([*parts, "</svg>", ""])


def bar(row, top, scale, unit):
    middle = top + BAR - 5
    length = max(row["value"] * scale, 1)
    yield f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end" fill="#1f2328">{escape(row["server"])}</text>'
    yield f'<rect x="{LABEL}" y="{top}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colour(row["server"])}"/>'
    end = length
    if "lowest" in row:
        low, high = row["lowest"] * scale, row["highest"] * scale
        line = top + BAR / 2
        yield f'<line x1="{LABEL + low:.1f}" x2="{LABEL + high:.1f}" y1="{line}" y2="{line}" stroke="#1f2328" stroke-width="2"/>'
        end = max(length, high)
    yield f'<text x="{LABEL + end + 8:.1f}" y="{middle}" fill="#1f2328">{row["value"]:g} {escape(unit)}</text>'


def colour(server):
    if server.startswith("floor"):
        return "#9aa4ad"
    return "#2f6fde" if server.startswith("lastbyte") else "#e08a2e"
