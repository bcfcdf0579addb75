"""A block that runs several times, with a non-linear layer after each pass."""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn

from vitnas.nn.block import Block, mlp_options
from vitnas.nn.layers.checkpoint import checkpointed
from vitnas.nn.layers.mlp import build_mlp
from vitnas.nn.layers.norm import build_norm
from vitnas.nn.layers.residual import build_residual
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import Place, Tap


class NonLinearLayer(nn.Module):
    """NLL(x) = res(x, MLP(norm(x))), where res is the residual connection of the stage.

    Source: SReT, Eq. 5 and 10. It keeps a repeated block from learning the identity. It has no
    drop-path.

    Args:
        place: the place of the block before this layer; `nll_ratio` gives the hidden width.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    MACs: ``N * 2 * C * int(nll_ratio * C)``
    """

    def __init__(self, place: Place) -> None:
        super().__init__()
        config, stage = place.config, place.stage_config
        self.norm = build_norm(stage.embed_dim, config.norm_of(stage), config.norm_eps)
        self.mlp = build_mlp(stage.embed_dim, stage.nll_ratio, *mlp_options(place))
        self.residual = build_residual(config.residual_of(stage), stage.embed_dim)
        self.branch_scale = config.branch_scale

    def forward(self, x: Tensor) -> Tensor:
        branch = self.mlp(self.norm(x))
        if self.branch_scale != 1.0:
            branch = self.branch_scale * branch
        out: Tensor = self.residual(x, branch)
        return out


class RecursiveBlock(nn.Module):
    """x -> NLL_L(F(.. NLL_2(F(NLL_1(F(x)))))): L passes through one block F.

    Source: SReT, Eq. 4 and 6, Figure 4 (internal loop). NLL_p is the non-linear layer after pass p.
    All passes share all weights of F: mixer, MLP, norms and LRC scalars. So these weights appear
    once among the parameters and once in a saved state. Each of the L non-linear layers has its
    own weights. With `nll_ratio` 0 there are none.

    In the external loop (Figure 4) the stage asks for one pass at a time, and NLL_p follows its
    last block alone.

    Args:
        place: the place of the block; `len(groups)` of its stage is L.
        drop_path: as for `Block`.
        has_nll: whether non-linear layers may follow the passes.

    Attributes:
        is_external: whether the stage is passed as a whole.
        grad_checkpointing: whether each pass keeps only its input and is computed again in the
            backward pass.

    Shape: `(B, N, C)` -> `(B, N, C)`.
    """

    def __init__(self, place: Place, drop_path: float = 0.0, *, has_nll: bool = True) -> None:
        super().__init__()
        stage = place.stage_config
        has_nll = has_nll and stage.has_nll
        self.grad_checkpointing = False
        self.passes, self.is_external = stage.passes, stage.is_external
        self.block = Block(place, drop_path)
        self.nlls = nn.ModuleList(
            NonLinearLayer(place) if has_nll else nn.Identity() for _ in range(stage.passes)
        )

    def forward(
        self, x: Tensor, grid: Grid, taps: list[Tap] | None = None, only: int | None = None
    ) -> Tensor:
        """All passes, or the pass with the index `only`."""
        asked = range(self.passes) if only is None else (only,)
        for pass_index, nll in enumerate(self.nlls):
            if pass_index in asked:  # mixed-depth training uses fewer passes than there are
                found = taps if pass_index == self.passes - 1 else None
                if self.grad_checkpointing:
                    x = checkpointed(self, partial(self._pass, nll, grid, pass_index), x, found)
                else:
                    x = nll(self.block(x, grid, pass_index, found))
        return x

    def _pass(
        self, nll: nn.Module, grid: Grid, pass_index: int, x: Tensor, taps: list[Tap] | None
    ) -> Tensor:
        out: Tensor = nll(self.block(x, grid, pass_index, taps))
        return out
