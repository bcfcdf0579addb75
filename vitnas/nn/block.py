"""One block: norm, token mixer, norm, MLP, each branch with its residual."""

from __future__ import annotations

from functools import partial
from typing import Literal

from torch import Tensor, nn

from vitnas.nn.layers.checkpoint import checkpointed
from vitnas.nn.layers.mlp import build_mlp
from vitnas.nn.layers.norm import apply_norm, build_norm
from vitnas.nn.layers.residual import DropPath, NoBranch, build_residual
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import Place, Tap, build_mixer


def mlp_options(place: Place) -> tuple[Literal["gelu", "star_relu"], bool, float]:
    """Activation, bias and dropout of every MLP of the network."""
    config = place.config
    return config.mlp_act, config.mlp_bias, config.proj_drop_rate


class Block(nn.Module):
    """x = res1(x, mixer(norm1(x))), then x = res2(x, mlp(norm2(x))); pre-norm.

    Source: Vaswani et al. in ViT's order; MetaFormer for the exchangeable mixer; SReT, Eq. 1 and 9
    for the learnable residuals. With `mlp_ratio` 0 the second line, its norm and its residual are
    left out, and with a mixer that is a whole block (`mbconv`) the first norm, too. With `skip`,
    which is no block, x stays as it is. Drop-path acts on each branch before the residual's scales;
    `branch_scale` multiplies each branch (2 in DeepViT's code for its S and L).

    Args:
        place: the place of the block in the network; it gives all sizes.
        drop_path: probability that an image skips a branch in training, 0 to 1.

    Attributes:
        grad_checkpointing: whether only the input is kept and the rest is computed again in the
            backward pass.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    Randomness: drop-path and the mixer's, in training only.
    """

    def __init__(self, place: Place, drop_path: float = 0.0) -> None:
        super().__init__()
        config, stage = place.config, place.stage_config
        dim, residual = stage.embed_dim, config.residual_of(stage)
        self.grad_checkpointing = False
        self.branch_scale = config.branch_scale
        norm = partial(build_norm, dim, config.norm_of(stage), config.norm_eps, stage.passes)
        self.norm1 = nn.Identity() if stage.facts.whole else norm()
        self.mixer = build_mixer(place)
        self.residual1 = build_residual(residual, dim) if stage.has_blocks else NoBranch()
        drops = drop_path and stage.has_blocks
        self.drop_path: nn.Module = DropPath(drop_path) if drops else nn.Identity()
        self.has_mlp = stage.has_mlp
        if self.has_mlp:
            self.norm2 = norm()
            self.mlp = build_mlp(dim, stage.mlp_ratio, *mlp_options(place))
            self.residual2 = build_residual(residual, dim)

    def forward(
        self, x: Tensor, grid: Grid, pass_index: int = 0, taps: list[Tap] | None = None
    ) -> Tensor:
        if self.grad_checkpointing:
            return checkpointed(self, partial(self._run, grid=grid, pass_index=pass_index), x, taps)
        return self._run(x, grid, pass_index, taps)

    def _run(self, x: Tensor, grid: Grid, pass_index: int, taps: list[Tap] | None) -> Tensor:
        mixed = self.mixer(apply_norm(self.norm1, x, pass_index), grid, pass_index, taps)
        x = self.residual1(x, self._branch(mixed))
        if self.has_mlp:
            normed = apply_norm(self.norm2, x, pass_index)
            x = self.residual2(x, self._branch(self.mlp(normed)))
        return x

    def _branch(self, x: Tensor) -> Tensor:
        out: Tensor = self.drop_path(x)
        return out if self.branch_scale == 1.0 else self.branch_scale * out
