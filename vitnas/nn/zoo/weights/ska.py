"""SKA's own code."""

from __future__ import annotations

from vitnas.config.model import ModelConfig
from vitnas.nn.zoo.weights.metaformer import MetaformerLayout, mixers_of


class SkaLayout(MetaformerLayout):
    """zizhao-hu/SKA: `metaformer_baselines.py`, which is MetaFormer's code with two more mixers.

    The code calls them STU (`token_mixer.k`, of shape (h, N, d)) and CSTU (`token_mixer.to_k`, a
    grouped convolution). STU has no query projection: the tokens are the query (`q_proj: false`).
    Algorithm 1 of the paper has one; a checkpoint with its `q.weight` is read, too. CSTU has query
    and value in one `qv`, 16 channels per head, and a scaled map. `stu_caformer_s18` has static
    keys in its last two stages; the paper has no such network.

    `SmallLayout` reads networks of the small-scale experiments.
    """

    name = "ska"
    title = "SKA's code (zizhao-hu/SKA)"

    def has(self, config: ModelConfig) -> bool:
        return bool(mixers_of(config) & {"ska", "cska"})
