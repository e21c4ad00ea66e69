"""Groups of horizontal bars as SVG."""

from html import escape

COLOURS = ("#1f77b4", "#2ca02c", "#ff7f0e", "#9467bd")
WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 760, 250, 60, 60, 12, 10


def bars(title, groups, names):
    """groups: [(label, [(name, value, target or None)])]. A line at 1, a mark at each target."""
    most = max([1.0] + [x for _, group in groups for _, value, target in group for x in (value, target or 0)])
    height = TOP + sum(len(group) * BAR + GAP for _, group in groups) + 20

    def at(value):
        return LEFT + value / most * (WIDTH - LEFT - RIGHT)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
           f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-size="14">{escape(title)}</text>']
    for i, name in enumerate(names):
        out.append(f'<rect x="{LEFT + 80 * i}" y="30" width="10" height="10" fill="{COLOURS[i]}"/>')
        out.append(f'<text x="{LEFT + 80 * i + 14}" y="39">{escape(name)}</text>')
    out.append(f'<path d="M{LEFT + 80 * len(names)} 29v12" stroke="black" stroke-width="2"/>')
    out.append(f'<text x="{LEFT + 80 * len(names) + 6}" y="39">asked for</text>')
    y = TOP
    for label, group in groups:
        out.append(f'<text x="{LEFT - 8}" y="{y + len(group) * BAR / 2 + 4}" text-anchor="end">{escape(label)}</text>')
        for name, value, target in group:
            out.append(f'<rect x="{LEFT}" y="{y}" width="{at(value) - LEFT:.1f}" height="{BAR - 2}" fill="{COLOURS[names.index(name)]}"/>')
            out.append(f'<text x="{at(value) + 4:.1f}" y="{y + BAR - 3}">{value:.2f}</text>')
            if target:
                out.append(f'<path d="M{at(target):.1f} {y - 1}v{BAR}" stroke="black" stroke-width="2"/>')
            y += BAR
        y += GAP
    out.append(f'<path d="M{at(1):.1f} {TOP - 6}V{height - 14}" stroke="#888" stroke-dasharray="4 3"/>')
    out.append(f'<text x="{at(1):.1f}" y="{height - 3}" text-anchor="middle">1</text>')
    return "\n".join(out + ["</svg>", ""])
