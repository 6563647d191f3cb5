"""Colours, the style sheet of the picture, and what all pages share, for light and for dark.

The style sheet has `$name` for each colour. A standalone picture gets the light values, because
many programs that show SVG do not support CSS variables. The page gets variables, so that it can
follow the reader's preference.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib.resources import files
from string import Template

EPOCH_COLOURS = 8
"""Later epochs use the colours again; each cell also has its epoch as text."""

LIGHT: Mapping[str, str] = {
    "bg": "#ffffff",
    "card": "#f6f8fb",
    "edge": "#d8dee8",
    "ink": "#17202c",
    "soft": "#5a6779",
    "faint": "#9aa5b4",
    "good": "#177a46",
    "goodbg": "#e3f5ea",
    "bad": "#c4232f",
    "badbg": "#fdebec",
    "warn": "#96600a",
    "warnbg": "#fdf2dc",
    "info": "#2863b4",
    "infobg": "#e8f0fc",
    "mark": "#17202c",
    "onmark": "#ffffff",
    "oncell": "#ffffff",
    "e0": "#2f6fb5",
    "e1": "#c2570c",
    "e2": "#7b4fc4",
    "e3": "#0d7f78",
    "e4": "#b83a7a",
    "e5": "#6d7215",
    "e6": "#8a5638",
    "e7": "#64748b",
}

DARK: Mapping[str, str] = {
    "bg": "#10151d",
    "card": "#19212c",
    "edge": "#2e3a49",
    "ink": "#e9eef5",
    "soft": "#a3b0c0",
    "faint": "#67758a",
    "good": "#5fd596",
    "goodbg": "#123323",
    "bad": "#ff858c",
    "badbg": "#3f1a1f",
    "warn": "#f2bd5c",
    "warnbg": "#3a2c10",
    "info": "#86b6ff",
    "infobg": "#16294a",
    "mark": "#e9eef5",
    "onmark": "#10151d",
    "oncell": "#0d131b",
    "e0": "#6fb0f2",
    "e1": "#f59a56",
    "e2": "#b698f5",
    "e3": "#4ecbbf",
    "e4": "#f08dbd",
    "e5": "#c6cb5a",
    "e6": "#d6a283",
    "e7": "#94a3b8",
}

_FONTS = """
.hf text{font-family:Inter,"Segoe UI","Helvetica Neue",Arial,"Liberation Sans",sans-serif;
font-size:12px;fill:$ink}
.hf .mono{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
.hf .m{text-anchor:middle}.hf .r{text-anchor:end}.hf .b{font-weight:700}
.hf .t10{font-size:10px}.hf .t11{font-size:11px}.hf .t13{font-size:13px}
.hf .t15{font-size:15px}.hf .t22{font-size:22px}
.hf .soft{fill:$soft}.hf .faint{fill:$faint}
.hf .cap{font-size:10px;letter-spacing:.09em;font-weight:700;fill:$soft}
"""

_LANES = """
.hf .card{fill:$card;stroke:$edge}
.hf .focus{stroke:$info;stroke-width:2}
.hf .grid{stroke:$edge;stroke-dasharray:2 4}
.hf .slot{fill:none;stroke:$faint;stroke-dasharray:3 3}
.hf .c rect{stroke-width:1.5}
.hf .c .b{fill:$oncell}.hf .c .t10{fill:$oncell}
.hf .u rect{fill-opacity:.13;stroke-dasharray:4 2.5}
.hf .new rect{stroke:$ink;stroke-width:2.5}
.hf .gone rect{fill:$badbg;stroke:$bad;stroke-dasharray:4 3;stroke-width:1.5}
.hf .gone text{fill:$bad;text-decoration:line-through}
.hf .gone path{stroke:$bad;stroke-width:1.5}
.hf .hw{stroke:$mark;stroke-width:2.5}.hf .hwf{fill:$mark}.hf .hwt{fill:$onmark}
.hf .leo{stroke:$soft;stroke-width:1.5}
.hf .disk{fill:$soft}
.hf .mem{stroke:$faint;stroke-width:2;stroke-dasharray:1 4;stroke-linecap:round}
.hf .dead .c,.hf .dead .dim{opacity:.38}
.hf .dead .card{stroke-dasharray:6 4}
"""

_CHIPS = """
.hf .chip rect{stroke-width:1.3}
.hf .p0 rect{fill:none;stroke:$faint}.hf .p0 text{fill:$soft}
.hf .dash rect{stroke-dasharray:4 3}
.hf .good rect{fill:$goodbg;stroke:$good}.hf .good text{fill:$good}
.hf .bad rect{fill:$badbg;stroke:$bad}.hf .bad text{fill:$bad}
.hf .warn rect{fill:$warnbg;stroke:$warn}.hf .warn text{fill:$warn}
.hf .info rect{fill:$infobg;stroke:$info}.hf .info text{fill:$info}
.hf .solid rect{fill:$mark;stroke:$mark}.hf .solid text{fill:$onmark}
.hf .lost rect{fill:$bad;stroke:$bad}.hf .lost text{fill:$bg}
.hf .warned{fill:$warn}
.hf .arrow path{fill:none;stroke:$info;stroke-width:2}.hf .arrow .tip{fill:$info;stroke:none}
.hf .arrow rect{fill:$bg;stroke:$info}.hf .arrow text{fill:$info}
.hf .arrow.no path{stroke:$bad;stroke-dasharray:5 4}.hf .arrow.no .tip{fill:$bad}
.hf .arrow.no rect{stroke:$bad}.hf .arrow.no text{fill:$bad}
"""


def _epochs() -> str:
    """Solid cells for committed records; outlined cells with coloured text for the others."""
    return "".join(
        f".hf .e{n} rect{{fill:$e{n};stroke:$e{n}}}.hf .u.e{n} text{{fill:$e{n}}}\n"
        for n in range(EPOCH_COLOURS)
    )


def style_sheet(*, variables: bool = False) -> str:
    """The picture's CSS: with the light colours, or with a variable for each."""
    colours = {name: f"var(--{name})" for name in LIGHT} if variables else dict(LIGHT)
    return Template(_FONTS + _epochs() + _LANES + _CHIPS).substitute(colours).strip()


def asset(name: str) -> str:
    """A file of `assets`."""
    return files("holdfast.web").joinpath(f"assets/{name}").read_text(encoding="utf-8")


def filled(page: str, title: str, contents: Mapping[str, str]) -> str:
    """A page of `assets`, with its title, its colours and these contents by their placeholders."""
    text = asset(page)
    for mark, content in (
        ("/*LIGHT*/", variables(LIGHT)),
        ("/*DARK*/", variables(DARK)),
        ("/*PICTURE*/", style_sheet(variables=True)),
        ("<!--TITLE-->", escape(title)),
        # Last, so that no placeholder inside a user's text is replaced.
        *contents.items(),
    ):
        text = text.replace(mark, content)
    return text


def variables(colours: Mapping[str, str]) -> str:
    """The same colours as CSS variables."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())
