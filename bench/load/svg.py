"""Line charts as SVG."""

import math
from html import escape

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 400, 64, 16, 40, 52


def _ticks(most, count=5):
    """Round values from 0 to at least `most`."""
    raw = most / count or 1
    power = 10 ** math.floor(math.log10(raw))
    step = next(power * f for f in (1, 2, 5, 10) if power * f >= raw * 0.999)
    return [step * i for i in range(math.ceil(most / step * 0.999) + 1)]


def chart(title, x_label, y_label, series, log_x=False):
    """`series`: {name: [(x, y)]}; y from 0. `log_x`: every x has a place of its own at its logarithm."""
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    xs = sorted({x for x, _ in points})
    scale = (lambda x: math.log2(x)) if log_x else (lambda x: x)
    low, high = scale(xs[0]) if log_x else 0, scale(xs[-1])
    y_ticks = _ticks(max(y for _, y in points))
    x_ticks = xs if log_x else [t for t in _ticks(xs[-1], 8) if t <= xs[-1]]

    def at(x, y):
        share = (scale(x) - low) / (high - low) if high > low else 0.5
        return (LEFT + share * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y / y_ticks[-1] * (HEIGHT - TOP - BOTTOM))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{WIDTH / 2}" y="18" text-anchor="middle" font-size="14">{escape(title)}</text>']
    for y in y_ticks:
        height = at(xs[0], y)[1]
        out.append(f'<path d="M{LEFT} {height:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{LEFT - 6}" y="{height + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in x_ticks:
        out.append(f'<text x="{at(x, 0)[0]:.1f}" y="{HEIGHT - BOTTOM + 18}" '
                   f'text-anchor="middle">{x:g}</text>')
    out.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>')
    out.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
    for i, (name, line) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in line))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(line) <= 30:
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in (at(*p) for p in line)]
        out.append(f'<text x="{LEFT + 8 + 130 * i}" y="{TOP - 8}" fill="{colour}">{escape(name)}</text>')
    return "\n".join(out + ["</svg>", ""])
