"""The console: a page that shows a living cluster, breaks it, and explains what happened.

`reading` observes the cluster, `answers` says why something is so and what a fault would do; the
modules here merge observations into updates and serve them to browsers.
"""

from holdfast.web.console.server import Console, ConsoleError

__all__ = ["Console", "ConsoleError"]
