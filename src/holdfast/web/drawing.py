"""SVG primitives. All text from a trace is escaped here."""

from __future__ import annotations

from html import escape

from holdfast.web.theme import LIGHT, style_sheet

WIDE = 0.64
NARROW = 0.55
"""The average width of a character relative to its height, in Arial and DejaVu."""


def number(value: float) -> str:
    """A number without a needless `.0`: a page has tens of thousands of numbers."""
    return f"{value:.1f}".removesuffix(".0")


def text(x: float, y: float, words: str, classes: str = "") -> str:
    return f'<text x="{number(x)}" y="{number(y)}"{_class(classes)}>{escape(words)}</text>'


def box(
    x: float, y: float, width: float, height: float, classes: str = "", *, radius: float = 5
) -> str:
    return (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
        f'height="{number(height)}" rx="{number(radius)}"{_class(classes)}/>'
    )


def card(x: float, y: float, width: float, height: float, classes: str = "card") -> str:
    return box(x, y, width, height, classes, radius=9)


def line(x1: float, y1: float, x2: float, y2: float, classes: str) -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f"<line {ends}{_class(classes)}/>"


def path(commands: str, classes: str = "") -> str:
    return f'<path d="{commands}"{_class(classes)}/>'


def group(classes: str, *children: str, title: str = "") -> str:
    tooltip = f"<title>{escape(title)}</title>" if title else ""
    return f"<g{_class(classes)}>{tooltip}{''.join(children)}</g>"


def embedded(width: float, height: float, title: str, body: str) -> str:
    """A picture inside a page, which has the style sheet and sets the size."""
    return (
        f'<svg class="hf" role="img" viewBox="0 0 {number(width)} {number(height)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{body}</svg>'
    )


def standalone(width: float, height: float, title: str, body: str) -> str:
    """A picture as a file of its own, in the light colours."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {number(width)} {number(height)}" '
        f'width="{number(width)}" height="{number(height)}" role="img" class="hf">'
        f"<title>{escape(title)}</title><style>{style_sheet()}</style>"
        f'<rect width="100%" height="100%" fill="{LIGHT["bg"]}"/>{body}</svg>\n'
    )


def pill(x: float, y: float, words: str, classes: str) -> tuple[str, float]:
    """A small labelled pill, its top left at (x, y). Returns the drawing and its width."""
    width = pill_width(words)
    body = box(x, y, width, 17, radius=8.5) + text(x + width / 2, y + 12, words, "t10 b m")
    return group(f"chip {classes}", body), width


def pill_width(words: str) -> float:
    return text_width(words, 10.5) + 14


def text_width(words: str, size: float, *, wide: bool = False) -> float:
    return len(words) * size * (WIDE if wide else NARROW)


def shortened(words: str, width: float, size: float, *, wide: bool = False) -> str:
    """The words, or as many of their letters as fit, and an ellipsis."""
    if text_width(words, size, wide=wide) <= width:
        return words
    letters = max(1, int(width / (size * (WIDE if wide else NARROW))) - 1)
    return words[:letters] + "…"


def wrapped(words: str, width: float, size: float) -> list[str]:
    """The words in lines that fit. A word that is too long stays whole."""
    lines = [""]
    for word in words.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _class(classes: str) -> str:
    return f' class="{classes}"' if classes else ""
