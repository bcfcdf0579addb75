"""The static-key mixer that replaces an attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from vitnas.config.graft import GraftConfig
from vitnas.errors import VitnasError
from vitnas.nn.graft.last_row import LastRowCska
from vitnas.nn.graft.projections import Projections, projections_of
from vitnas.nn.layers.images import InputSizeError
from vitnas.nn.layers.init import init_linear
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers.cska import ConvStaticKeyAttention
from vitnas.nn.mixers.ska import StaticKeyAttention, StaticKeyMixer

Mixers = dict[str, Callable[..., StaticKeyMixer]]
"""Name of a mixer -> its class."""


class Site(NamedTuple):
    """An attention in a network.

    Attributes:
        name: e.g. `blocks.3.attn`.
        block: the block around it.
        stage: index of the block's stage.
        grid: (H, W) of the tokens that see each other; in Swin, those of one window.
        prefix: number of tokens before the grid's tokens, e.g. 1 for a class token.
        stage_grid: (H, W) of all tokens of the stage.
        field: the block's name for its attention.
    """

    name: str
    block: Any
    stage: int
    grid: Grid
    prefix: int
    stage_grid: Grid
    field: str = "attn"

    @property
    def attention(self) -> Any:
        """The module, or None where the block has none."""
        return getattr(self.block, self.field, None)

    @property
    def num_tokens(self) -> int:
        return self.prefix + self.grid[0] * self.grid[1]


class StaticKeyGraft(nn.Module):
    """`ska` or `cska` in the place of an attention of timm. It has the same call as the attention.

    It keeps these parts of the attention, bit for bit: the projections to query and value
    (`mixer.qv` is the first and the last third of `qkv`), the output projection, and both
    dropouts. With another number of heads, it keeps them for the heads that both have. It loses the
    projection to the key and what mixes dynamic maps (CaiT's talking heads). The static key is new.

    Args:
        site: the attention to replace. It is not changed here.
        config: the kind of mixer, its scale, and how its key is initialised.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    Randomness: the key's initial values, from torch's generator; dropout, in training only.
    """

    mixers: ClassVar[Mixers] = {
        "ska": StaticKeyAttention,
        "cska": ConvStaticKeyAttention,
    }

    def __init__(self, site: Site, config: GraftConfig) -> None:
        super().__init__()
        assert config.mixer is not None
        self.kind, self.grid, self.num_tokens = config.mixer, site.grid, site.num_tokens
        old, found = site.attention, projections_of(site.attention)
        heads = config.num_heads or old.num_heads
        self.mixer: Any = self.kind_of(config)(
            old.proj.out_features,
            heads,
            self.num_keys(site),
            width=heads * (old.proj.in_features // old.num_heads),
            qkv_bias=found.bias is not None,
            proj_bias=old.proj.bias is not None,
            qk_scale=config.qk_scale,
            key_init=config.key_init,
            act=config.attn_act,
            mask_diagonal=config.mask_diagonal,
            grid=site.grid,
            tau=None if config.temperature.kind == "learnable" else 1.0,
            **self.options(site, config),
        )
        self.mixer.to(old.proj.weight.device, old.proj.weight.dtype)
        self._keep(old, found)
        self.train(old.training)

    def num_keys(self, site: Site) -> int:
        """How many values there are."""
        return site.num_tokens

    def kind_of(self, config: GraftConfig) -> Callable[..., StaticKeyMixer]:
        """The mixer's class."""
        assert config.mixer is not None
        return LastRowCska if config.class_row == "last" else self.mixers[config.mixer]

    def options(self, site: Site, config: GraftConfig) -> dict[str, Any]:
        """Options of the mixer that depend on the mixer or the network."""
        options: dict[str, Any] = {"windows": config.windows}
        if config.mixer == "cska":
            options |= {"class_token": site.prefix == 1, "key_kernel": config.key_kernel}
        return options

    def _keep(self, attention: Any, found: Projections) -> None:
        """Take over those parts of `attention` that the mixer needs."""
        for name in ("proj_drop", "attn_drop"):
            setattr(self.mixer, name, getattr(attention, name))
        width, before = self.mixer.width, attention.proj.in_features
        if width > before:
            self.mixer.apply(init_linear)
        for name, new in self.mixer.qv.named_parameters():
            for part, old in zip(new.data.chunk(2), getattr(found, name), strict=True):
                part[:before] = old.detach()[:width]
            new.requires_grad_(found.learns[name] or width > before)
        if width == before:
            self.mixer.proj = attention.proj
            return
        new, old = self.mixer.proj, attention.proj
        new.weight.data[:, :before] = old.weight.detach()[:, :width]
        new.weight.requires_grad_(old.weight.requires_grad or width > before)
        new.bias = old.bias

    def forward(
        self,
        x: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
        rope: None = None,
    ) -> Tensor:
        if attn_mask is not None or is_causal:
            raise VitnasError("a graft accepts no attention mask: its static key is for all tokens")
        self.check(x)
        out: Tensor = self.mixer(x, self.grid)
        return out

    def check(self, x: Tensor) -> None:
        """Check that the number of tokens is that of the static key.

        Raises:
            InputSizeError: it is another number; the message names both.
        """
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            return  # in a trace sizes are tensors, and a comparison would cause a warning
        if x.shape[1] != self.num_tokens:
            height, width = self.grid
            raise InputSizeError(
                f"this graft has static keys for {self.num_tokens} tokens ({height}x{width}), but "
                f"its input has {x.shape[1]}: build the network for the images' size, then graft"
            )
