"""Two kinds of charts as SVG: lines over a number, and bars with their values. No more than the bench needs."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 72
COLOURS = ("#1f6feb", "#d9480f", "#2b8a3e", "#862e9c", "#868e96", "#0b7285")
STYLE = "font-family='sans-serif' font-size='12' fill='#333'"


def text(x, y, content, anchor="start", size=12, extra=""):
    return "<text x='%.1f' y='%.1f' text-anchor='%s' font-size='%d' %s>%s</text>" % (
        x,
        y,
        anchor,
        size,
        extra,
        escape(content),
    )


def ticks(most):
    """Round numbers from 0 to at least `most`."""
    step = 1.0
    while step * 5 < most:
        step *= 10
    while step * 5 > most * 10:
        step /= 10
    for part in (0.1, 0.2, 0.5, 1.0):
        if step * part * 6 >= most:
            step *= part
            break
    count = 0
    while count * step < most:
        count += 1
    return [i * step for i in range(count + 1)]


def short(value):
    return ("%.10g" % round(value, 6)) if value < 1e5 else "%.0f" % value


def frame(title, body, height=HEIGHT):
    head = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' width='%d' height='%d'>" % (
        WIDTH,
        height,
        WIDTH,
        height,
    )
    background = "<rect width='100%' height='100%' fill='white'/>"
    return "\n".join([head, "<g %s>" % STYLE, background, text(LEFT, 22, title, size=14), *body, "</g>", "</svg>", ""])


def line_chart(title, x_label, y_label, series):
    """`series`: name -> [(x, y)], y from 0 on. A y of None is left out."""
    points = [(x, y) for values in series.values() for x, y in values if y is not None]
    x_marks = ticks(max(x for x, _ in points))
    y_marks = ticks(max([y for _, y in points] + [1e-9]))
    across = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * x / x_marks[-1]
    up = lambda y: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / y_marks[-1]
    body = []
    for y in y_marks:
        body.append("<path d='M%d %.1fH%d' stroke='#ddd'/>" % (LEFT, up(y), WIDTH - RIGHT))
        body.append(text(LEFT - 6, up(y) + 4, short(y), "end"))
    for x in x_marks:
        body.append(text(across(x), HEIGHT - BOTTOM + 18, short(x), "middle"))
    body.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 36, x_label, "middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    body.append(text(16, middle, y_label, "middle", extra="transform='rotate(-90 16 %.1f)'" % middle))
    left = LEFT
    for colour, (name, values) in zip(COLOURS, series.items()):
        values = [(across(x), up(y)) for x, y in values if y is not None]
        body.append(
            "<polyline fill='none' stroke='%s' stroke-width='2' points='%s'/>"
            % (colour, " ".join("%.1f,%.1f" % at for at in values))
        )
        body += ["<circle cx='%.1f' cy='%.1f' r='3' fill='%s'/>" % (*at, colour) for at in values]
        body.append("<rect x='%.1f' y='%d' width='12' height='12' fill='%s'/>" % (left, HEIGHT - 22, colour))
        body.append(text(left + 16, HEIGHT - 12, name))
        left += 32 + 7 * len(name)
    return frame(title, body)


def bar_chart(title, x_label, bars, mark=None):
    """Bars to the right, a row each: (name, value), a value of None without a bar. `mark`: a line at this value."""
    row, left = 26, 24 + 7 * max(len(name) for name, _ in bars)
    height = TOP + row * len(bars) + 44
    marks = ticks(max([value for _, value in bars if value is not None] + [mark or 0, 1e-9]) * 1.1)
    across = lambda value: left + (WIDTH - left - RIGHT - 40) * value / marks[-1]
    bottom = height - 40
    body = []
    for value in marks:
        body.append("<path d='M%.1f %dV%d' stroke='#ddd'/>" % (across(value), TOP, bottom))
        body.append(text(across(value), bottom + 16, short(value), "middle"))
    body.append(text((left + WIDTH) / 2, bottom + 32, x_label, "middle"))
    for index, (name, value) in enumerate(bars):
        y = TOP + row * index
        body.append(text(left - 8, y + 17, name, "end"))
        if value is None:
            body.append(text(left + 6, y + 17, "–"))
            continue
        body.append(
            "<rect x='%d' y='%d' width='%.1f' height='%d' fill='%s'/>"
            % (left, y + 4, across(value) - left, row - 8, COLOURS[0])
        )
        body.append(text(across(value) + 6, y + 17, "%.2f" % value))
    if mark is not None:
        body.append("<path d='M%.1f %dV%d' stroke='#d9480f' stroke-dasharray='4 3'/>" % (across(mark), TOP, bottom))
    return frame(title, body, height)
