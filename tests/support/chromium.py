"""Debian's Chromium, driven by Playwright: no download, a fresh profile, no network of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import BrowserContext, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--js-flags=--expose-gc",
)
WAIT_MS = 120_000
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def why_missing() -> str:
    """Why there is no Chromium; empty if there is one."""
    return "" if shutil.which("chromium") else "chromium was not found (Debian: chromium)"


@contextmanager
def chromium(profile: Path) -> Iterator[BrowserContext]:
    """A running browser with one empty page; `profile` is a folder that no other browser uses."""
    with sync_playwright() as driver:
        context = driver.chromium.launch_persistent_context(
            profile,
            executable_path=shutil.which("chromium"),
            headless=True,
            args=list(FLAGS),
            viewport={"width": DESKTOP["width"], "height": DESKTOP["height"]},
        )
        context.set_default_timeout(WAIT_MS)
        try:
            yield context
        finally:
            context.close()
