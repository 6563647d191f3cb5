"""Shows: the stepper as one page, a moment as one picture. Reads frames, decides nothing."""

from holdfast.web.layout import layout_of
from holdfast.web.stepper_page import html_page, html_tabs
from holdfast.web.svg import svg

__all__ = ["html_page", "html_tabs", "layout_of", "svg"]
