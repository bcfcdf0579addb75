"""MetaFormer's own code: CAFormer and ConvFormer."""

from __future__ import annotations

from vitnas.nn.zoo.weights.metaformer import MetaformerLayout


class CaformerLayout(MetaformerLayout):
    """sail-sg/metaformer: `metaformer_baselines.py`.

    timm has other names, because its downsampling is part of the stage. The norm inside the
    classifier has PyTorch's epsilon 1e-5 here and 1e-6 in timm. The weights do not show the size
    of the images.
    """

    name = "caformer"
    title = "MetaFormer's code (sail-sg/metaformer)"
