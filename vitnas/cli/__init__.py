"""The command line: parses, calls `vitnas.api`, prints. No logic of its own.

Exit codes: 0 done, 1 a bug of ours (with its traceback) or nobody reads what is printed, 2
something the user can mend (one line on stderr), 130 and 143 interrupted by Ctrl-C and by SIGTERM.
"""

from vitnas.cli import runs  # isort: skip  # the order of commands in --help
from vitnas.cli import calibrate, confirm, data, deploy, diagnose, files, gpu, networks, scoring
from vitnas.cli.app import app, main

__all__ = [
    "app",
    "calibrate",
    "confirm",
    "data",
    "deploy",
    "diagnose",
    "files",
    "gpu",
    "main",
    "networks",
    "runs",
    "scoring",
]
