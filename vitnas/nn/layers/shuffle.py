"""The permutation of tokens before group attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vitnas.nn.layers.resizing import Change, TokenLayout


class TokenShuffle(nn.Module):
    """A permutation of N tokens, and its inverse.

    Source: SReT, Section 4 and Algorithm 1. In training a new permutation is drawn at every call,
    on the device of the tokens. In eval and in every export it is fixed.

    Args:
        num_tokens: N.
        block: index of the block in the network.
        pass_index: index of the pass through that block. N, `block` and `pass_index` seed the fixed
            permutation.

    Randomness: training draws from the global generator of the tokens' device. The fixed
    permutation comes from its own generator; eval draws nothing.
    """

    order: Tensor
    inverse: Tensor

    def __init__(self, num_tokens: int, block: int, pass_index: int) -> None:
        super().__init__()
        self.num_tokens, self.block, self.pass_index = num_tokens, block, pass_index
        order = self.fixed_order(num_tokens)
        order = order.to(torch.empty(0).device)  # the default device, maybe "meta"
        self.register_buffer("order", order, persistent=False)
        self.register_buffer("inverse", torch.argsort(order), persistent=False)

    def fixed_order(self, num_tokens: int) -> Tensor:
        """The permutation of `num_tokens` tokens in eval, on the CPU."""
        seed = (self.block * 1009 + self.pass_index) * 1_000_003 + num_tokens
        generator = torch.Generator(device="cpu").manual_seed(seed)
        return torch.randperm(num_tokens, generator=generator, device="cpu")

    def init_non_persistent_buffers(self) -> None:
        """timm's hook: fill the buffers again after `to_empty` on a network built on "meta"."""
        self.order = self.fixed_order(self.num_tokens).to(self.order.device)
        self.inverse = torch.argsort(self.order)

    def forward(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """`(order, inverse)`, each `(N,)`: `x[:, order][:, inverse]` is `x`."""
        if not self.training:
            return self.order, self.inverse
        order = torch.randperm(self.num_tokens, device=device)
        return order, torch.argsort(order)

    def resized(self, old: TokenLayout, new: TokenLayout) -> list[Change]:
        """The permutation of a network that is built for the new size."""
        order = self.fixed_order(new.tokens).to(self.order.device)
        return [
            Change(self, "num_tokens", new.tokens),
            Change(self, "order", order),
            Change(self, "inverse", torch.argsort(order)),
        ]
