"""`python -m holdfast.web.playground FOLDER PYODIDE`: writes the page, for `make site`.

PYODIDE is the unpacked npm package.
"""

import sys
from pathlib import Path

from holdfast.web.playground.site import write_playground

write_playground(Path(sys.argv[1]), Path(sys.argv[2]))
