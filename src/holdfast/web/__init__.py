"""Renders the stepper and the audit as pages, and a moment as a picture. It only reads frames."""

from holdfast.web.layout import layout_of
from holdfast.web.stepper_page import html_page, html_tabs
from holdfast.web.svg import svg

__all__ = ["html_page", "html_tabs", "layout_of", "svg"]
