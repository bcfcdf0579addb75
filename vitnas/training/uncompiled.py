"""PyTorch's optimizers without what wraps their methods for torch.compile.

The wrappers import PyTorch's compiler at the first step, in every worker: that takes nearly as long
as the import of PyTorch itself. Nothing here compiles an optimizer.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch


class _Uncompiled(torch.optim.Optimizer):
    add_param_group: Any = inspect.unwrap(torch.optim.Optimizer.add_param_group)
    state_dict: Any = inspect.unwrap(torch.optim.Optimizer.state_dict)
    load_state_dict: Any = inspect.unwrap(torch.optim.Optimizer.load_state_dict)


class AdamW(_Uncompiled, torch.optim.AdamW):
    """`torch.optim.AdamW`, to the bit."""

    step: Any = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class SGD(_Uncompiled, torch.optim.SGD):
    """`torch.optim.SGD`, to the bit."""

    step: Any = torch.no_grad()(inspect.unwrap(torch.optim.SGD.step))
