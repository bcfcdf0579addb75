"""What looks inside a network: its attention maps, its features and its residual coefficients.

Everything is read by forward hooks from the network that runs anyway; there is no second copy of
any attention. `vitnas.diagnose.run.diagnose` does it all, and each diagnostic is a file of its own
with its definition, its running sums and its figure. `import vitnas.diagnose` loads no torch.
"""

from vitnas.diagnose.names import NAMES, choose

__all__ = ["NAMES", "choose"]
