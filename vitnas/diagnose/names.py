"""The names of the diagnostics. No torch, so an unknown name is an error at once."""

from __future__ import annotations

from vitnas.errors import ConfigError, nearest_name

WHAT = {
    "maps": "attention maps of one image or several (DeepViT, Fig. 6; SKA, Fig. 5)",
    "similarity": "similarity of attention maps across blocks (DeepViT, Eq. 2 and 7)",
    "features": "similarity of features to the last block's (DeepViT, Fig. 4)",
    "heads": "similarity of the maps of one block's heads (DeepViT, Fig. 3c)",
    "cka": "centred kernel alignment of all blocks' features (BViT, Eq. 9)",
    "distance": "mean attention distance of every head (BViT, Fig. 6)",
    "rollout": "attention rollout on one image (BViT, Fig. 7)",
    "responses": "response maps of one image after each block (SReT, Fig. 10)",
    "theta": "the matrices that mix heads in re-attention (DeepViT, Fig. 8c)",
    "lrc": "evolution of the residual coefficients in training (SReT, Fig. 6 and 16)",
    "landscape": "loss around the weights along two random directions (SReT, Fig. 9)",
}
NAMES = tuple(WHAT)
USUAL = tuple(name for name in NAMES if name != "landscape")
"""Those that are done without a choice. The landscape runs the network hundreds of times."""
OF_MAPS = ("maps", "similarity", "heads", "distance", "rollout")
"""The diagnostics that need attention maps."""


def choose(only: str | None) -> tuple[str, ...]:
    """`"cka,heads"` -> these diagnostics, in our order; None = the usual ones.

    Raises:
        ConfigError: a name is unknown; the error names the nearest.
    """
    if only is None:
        return USUAL
    asked = [name.strip() for name in only.split(",") if name.strip()]
    for name in asked:
        if name not in NAMES:
            rule = f"must be one of {', '.join(NAMES)}"
            raise ConfigError(rule, address="--only", value=name, nearest=nearest_name(name, NAMES))
    if not asked:
        raise ConfigError(f"names none of {', '.join(NAMES)}", address="--only", value=only)
    return tuple(name for name in NAMES if name in asked)
