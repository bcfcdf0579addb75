"""No block at all."""

from __future__ import annotations

from vitnas.nn.mixers.identity import Identity


class Skip(Identity):
    """x -> x, and so does its block: no norm, no residual, no MLP.

    A stage of it is its downsampling alone, or the stem in the first stage. With `downsample: vgg`
    such stages make a plain CNN: a convolution, then pooling.

    Source: the skip operation of search spaces with a variable number of layers, as in Cai et al.,
    "ProxylessNAS", 2019.

    Shape: `(B, N, C)` -> `(B, N, C)`; no parameters.
    MACs: ``0``
    Randomness: none.
    """
