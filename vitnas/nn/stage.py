"""A stage: blocks at one resolution, after a downsampling layer."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from vitnas.config.model import ModelConfig
from vitnas.nn.block import Block
from vitnas.nn.layers.downsample import Downsample
from vitnas.nn.layers.position import ConditionalPosition
from vitnas.nn.layers.tokens import Grid
from vitnas.nn.mixers import Place, Tap
from vitnas.nn.recursion import RecursiveBlock


class Stage(nn.Module):
    """`(B, N', C')` of the stage before -> `(B, N, C)`.

    Args:
        config: the whole network.
        index: which of its stages this is; the first has no downsampling.
        drop_paths: drop-path probability of each block of this stage.

    Attributes:
        tapped: for each block, whether it writes to the taps or reads from them.
    """

    def __init__(self, config: ModelConfig, index: int, drop_paths: Sequence[float]) -> None:
        super().__init__()
        stage = config.stages[index]
        self.grid: Grid = config.grids[index]
        self.downsample: Downsample | None = None
        if index:
            before = config.stages[index - 1].embed_dim
            hidden, squeezed = config.downsample_channels(index)
            self.downsample = Downsample(
                before,
                stage.embed_dim,
                config.downsample,
                config.norm,
                config.norm_eps,
                hidden,
                squeezed,
            )
        self.position: ConditionalPosition | None = None
        if config.pos_embed == "conditional":
            self.position = ConditionalPosition(stage.embed_dim, config.num_prefix_tokens)
        first = sum(earlier.depth for earlier in config.stages[:index])
        mixed = zip(stage.mixers, config.has_reattention(index), drop_paths, strict=True)
        self.blocks = nn.ModuleList(
            (RecursiveBlock if stage.passes > 1 else Block)(
                Place(config.only(index, mixer), index, number, reattention), rate
            )
            for number, (mixer, reattention, rate) in enumerate(mixed, start=first)
        )
        self.tapped = tapped_blocks(config, index)

    def set_grad_checkpointing(self, enable: bool = True) -> None:
        """Whether each block (each pass of it) is computed again in the backward pass."""
        for block in self.blocks:
            block.grad_checkpointing = enable  # type: ignore[assignment]

    def forward(
        self,
        x: Tensor,
        taps: list[Tap] | None = None,
        take: list[int] | None = None,
        taken: list[Tensor] | None = None,
        last: int = -1,
    ) -> Tensor:
        """Run the blocks.

        Args:
            x: tokens of the stage before.
            taps: queries, keys, values and maps that blocks share with each other and with broad
                attention.
            take: indices of blocks whose output is appended to `taken`.
            taken: the list to which they are appended.
            last: index of the last block to run; -1 runs all.
        """
        if self.downsample is not None:
            height, width = self.grid
            x = self.downsample(x, (2 * height, 2 * width))
        if self.position is not None:
            x = self.position(x, self.grid)
        for index, block in enumerate(self.blocks):
            if last < 0 or index <= last:
                x = block(x, self.grid, taps=taps if self.tapped[index] else None)
                if take is not None and taken is not None and index in take:
                    taken.append(x)
        return x


def tapped_blocks(config: ModelConfig, index: int) -> tuple[bool, ...]:
    """Which blocks of stage `index` give a tap to broad attention, or give or use a shared map.

    `broad.layers` says which blocks broad attention collects from. The last k blocks use the map of
    the attention before them.
    """
    stage = config.stages[index]
    if config.map_source is not None:
        first = sum(earlier.depth for earlier in config.stages[:index])
        flags = enumerate(config.has_reattention(index), start=first)
        return tuple(has or number == config.map_source for number, has in flags)
    return tuple((index, block) in config.broad_sources for block in range(stage.depth))
