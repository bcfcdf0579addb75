"""Diagnostics of a network: its attention maps, its features and its residual coefficients.

Forward hooks read everything from the running network, so no attention is implemented a second
time. `vitnas.diagnose.run.diagnose` runs all diagnostics. Each diagnostic is one file with its
definition, its sums and its figure. `import vitnas.diagnose` does not import torch.
"""

from vitnas.diagnose.names import NAMES, choose

__all__ = ["NAMES", "choose"]
