"""A terminal's screen, as tmux captures it with its colours, drawn as SVG: text stays text."""

import re
from html import escape
from typing import NamedTuple

COLUMN = 8.4  # of a monospaced font of 14 pixels
LINE = 18
MARGIN = 14
BAR = 26  # above the first line, with the title
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
PLAIN = "#d8dee9"
BACKGROUND = "#1e222a"
EDGE = "#4c566a"
# Of a terminal with sixteen colours; legible on BACKGROUND.
PALETTE = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
    "#7f8898", "#f08a92", "#b5e08f", "#f0d399", "#82c4ff", "#d9a0e8", "#7fd1dc", "#ffffff",
]  # fmt: skip
GREYS = [8 + 10 * step for step in range(24)]
CUBE = [0, 95, 135, 175, 215, 255]
ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\]8;[^\x1b\x07]*(?:\x1b\\|\x07)|\x1b\(B|\x0f")


class Style(NamedTuple):
    colour: str = PLAIN
    behind: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False
    reversed: bool = False


def colour_of(number):
    """Of the 256 of xterm."""
    if number < 16:
        return PALETTE[number]
    if number >= 232:
        return "#" + f"{GREYS[number - 232]:02x}" * 3
    number -= 16
    return "#{:02x}{:02x}{:02x}".format(CUBE[number // 36], CUBE[number // 6 % 6], CUBE[number % 6])


def extended(codes):
    """What follows 38 or 48: an indexed colour or a direct one."""
    if next(codes) == 5:
        return colour_of(next(codes))
    return "#{:02x}{:02x}{:02x}".format(next(codes), next(codes), next(codes))


SWITCHES = {1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underlined": True}, 7: {"reversed": True}, 22: {"bold": False, "dim": False},
            23: {"italic": False}, 24: {"underlined": False}, 27: {"reversed": False}, 39: {"colour": PLAIN}, 49: {"behind": ""}}  # fmt: skip


def changed(style, parameters):
    codes = iter([int(code or 0) for code in re.split("[;:]", parameters)])
    for code in codes:
        if code == 0:
            style = Style()
        elif code in (38, 48):
            style = style._replace(**{"colour" if code == 38 else "behind": extended(codes)})
        elif 30 <= code < 38 or 90 <= code < 98:
            style = style._replace(colour=PALETTE[code - 30 if code < 90 else code - 82])
        elif 40 <= code < 48 or 100 <= code < 108:
            style = style._replace(behind=PALETTE[code - 40 if code < 100 else code - 92])
        else:
            style = style._replace(**SWITCHES.get(code, {}))
    return style


def runs_of(screen):
    """For each line, its pieces of one style: (column, style, text)."""
    style = Style()
    for line in screen.split("\n"):
        runs, column, at = [], 0, 0
        for escaped in [*ESCAPE.finditer(line), None]:
            text = line[at : escaped.start() if escaped else None]
            if text:
                runs.append((column, style, text))
                column += len(text)
            if escaped:
                at = escaped.end()
                style = changed(style, escaped.group(1)) if escaped.group(1) is not None else style
        yield runs


def drawn_run(row, column, style, text):
    x, y = MARGIN + column * COLUMN, BAR + MARGIN + row * LINE
    colour, behind = (style.behind or BACKGROUND, style.colour) if style.reversed else (style.colour, style.behind)
    width = len(text) * COLUMN
    if behind:
        yield f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{LINE}" fill="{behind}"/>'
    if text.strip():
        named = {"font-weight": "bold" if style.bold else "", "font-style": "italic" if style.italic else "",
                 "text-decoration": "underline" if style.underlined else "", "opacity": "0.65" if style.dim else ""}  # fmt: skip
        more = "".join(f' {name}="{value}"' for name, value in named.items() if value)
        yield f'<text x="{x:.1f}" y="{y + 13:.1f}" textLength="{width:.1f}" fill="{colour}"{more}>{escape(text, quote=False)}</text>'


def drawn(screen, title, columns):
    """The whole picture; empty lines at the end are left out."""
    lines = list(runs_of(screen))
    while lines and not any(text.strip() or style.behind or style.reversed for _, style, text in lines[-1]):
        lines.pop()
    width, height = round(2 * MARGIN + columns * COLUMN), BAR + 2 * MARGIN + len(lines) * LINE
    body = [piece for row, runs in enumerate(lines) for run in runs for piece in drawn_run(row, *run)]
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8" fill="{BACKGROUND}" stroke="{EDGE}"/>',
        *(f'<circle cx="{MARGIN + 4 + 16 * number}" cy="17" r="5" fill="{colour}"/>' for number, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))),
        f'<g font-family="{FONT}" font-size="14" xml:space="preserve">',
        f'<text x="{width / 2:.0f}" y="21" text-anchor="middle" fill="{PALETTE[8]}" font-size="12">{escape(title)}</text>',
    ]
    return "\n".join([*head, *body, "</g>", "</svg>"]) + "\n"
