"""What leaves the house: one network of a run as a folder, and how it is read back.

`import vitnas.export` loads no torch; `load` and `export_network` do when they are called.
"""

from vitnas.export.choose import choose_trial, parse_flops
from vitnas.export.folder import CONFIG_FILE, WEIGHTS_FILE, export_network, load

__all__ = [
    "CONFIG_FILE",
    "WEIGHTS_FILE",
    "choose_trial",
    "export_network",
    "load",
    "parse_flops",
]
