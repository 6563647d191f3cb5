"""The lab in a browser: the page's worker calls `answer`, in Pyodide.

This package and all that it imports is pure Python from the standard library. `site` alone is for
the build: it writes the page.
"""

from holdfast.web.playground.session import answer

__all__ = ["answer"]
