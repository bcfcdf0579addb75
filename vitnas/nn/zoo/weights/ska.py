"""SKA's own code."""

from __future__ import annotations

from vitnas.config.model import ModelConfig
from vitnas.nn.zoo.weights.metaformer import MetaformerLayout, mixers_of


class SkaLayout(MetaformerLayout):
    """zizhao-hu/SKA: `metaformer_baselines.py`, MetaFormer's code with two token mixers more.

    There they are called STU (`token_mixer.k`, of shape (h, N, d)) and CSTU (`token_mixer.to_k`, a
    grouped convolution). STU has no query projection: the tokens are the query (`q_proj: false`),
    unlike Algorithm 1 of the paper, whose `q.weight` is taken too. CSTU has query and value in one
    `qv`, 16 channels a head, and its map is scaled. `stu_caformer_s18` has static keys in its last
    two stages, which is none of the paper's networks.

    The networks of the small-scale experiments cannot be converted: their patches are shifted
    (SPT) and their attention masks its diagonal (LSA), and the configuration has neither.
    """

    name = "ska"
    title = "SKA's code (zizhao-hu/SKA)"

    def has(self, config: ModelConfig) -> bool:
        return bool(mixers_of(config) & {"ska", "cska"})
