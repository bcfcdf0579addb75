"""A network in one readable line."""

from __future__ import annotations

from vitnas.config.mixers import short_name
from vitnas.config.network import Network
from vitnas.config.notation import format_schedule
from vitnas.config.stage import StageConfig


def one_line(config: Network) -> str:
    """A network as one line of a table.

    `2x dwconv 32 > 3x mhsa 64 h2 [8,2] nll 1 | re 2 | gamma 0.6`: stages from left to right as
    depth, token mixer, width, heads, group schedule (when there is more than one pass or group),
    `external` for that loop and NLL ratio, then what holds for the whole network.
    """
    parts = [" > ".join(_one_stage(stage) for stage in config.stages)]
    if config.reattention_blocks:
        parts.append(f"re {config.reattention_blocks}")
    if config.broad.gamma:
        parts.append(f"gamma {config.broad.gamma:g}")
    return " | ".join(parts)


def _one_stage(stage: StageConfig) -> str:
    mixer = stage.token_mixer
    name = short_name(mixer) if isinstance(mixer, str) else f"({mixer})"
    text = f"{stage.depth}x {name} {stage.embed_dim}"
    if stage.heads:
        text += f" h{stage.heads}"
        if stage.attn_width != stage.embed_dim:
            text += f"x{stage.attn_width // stage.heads}"
    if stage.num_windows > 1:
        text += f" w{stage.windows}"
    if stage.groups != (1,):
        text += " " + format_schedule([stage.groups])
    if stage.is_external and stage.depth > 1:
        text += " external"
    if stage.has_nll:
        text += f" nll {stage.nll_ratio:g}"
    return text
