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
        final: how many blocks the last round runs, in the external loop; all but in a pruned stage.
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
                config.num_prefix_tokens,
                config.pooling,
            )
        self.position: ConditionalPosition | None = None
        if config.pos_embed == "conditional":
            self.position = ConditionalPosition(stage.embed_dim, config.num_prefix_tokens)
        first = sum(earlier.depth for earlier in config.stages[:index])
        mixed = zip(stage.mixers, config.has_reattention(index), drop_paths, strict=True)
        self.blocks = nn.ModuleList()
        for number, (mixer, reattention, rate) in enumerate(mixed, start=first):
            place = Place(config.only(index, mixer), index, number, reattention)
            has_nll = not stage.is_external or number == first + stage.depth - 1
            recursive = stage.passes > 1
            self.blocks.append(
                RecursiveBlock(place, rate, has_nll=has_nll) if recursive else Block(place, rate)
            )
        self.tapped = tapped_blocks(config, index)
        self.final = stage.depth

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
        rounds = self._rounds()
        for pass_index in range(rounds - 1):
            for block in self.blocks:
                x = block(x, self.grid, only=pass_index)
        final = {"only": rounds - 1} if rounds else {}
        for index, block in enumerate(self.blocks):
            if index < self.final and (last < 0 or index <= last):
                x = block(x, self.grid, taps=taps if self.tapped[index] else None, **final)
                if take is not None and taken is not None and index in take:
                    taken.append(x)
        return x

    def prune(self, last: int) -> None:
        """Remove what the output of the block with index `last` does not need.

        The external loop needs all blocks, in the rounds before the last one.
        """
        if not self._rounds():
            self.blocks = self.blocks[: last + 1]
        elif last + 1 < self.final:
            self.final = last + 1
            *_, end = self.blocks
            assert isinstance(end, RecursiveBlock)
            end.nlls[-1] = nn.Identity()

    def _rounds(self) -> int:
        """How often all blocks are run together; 0 where each has its passes by itself."""
        first = self.blocks[0]
        return first.passes if isinstance(first, RecursiveBlock) and first.is_external else 0


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
