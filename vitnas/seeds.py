"""One seed from what it is for, the same on every machine and in every process."""

from __future__ import annotations

import hashlib


def derive_seed(*parts: object) -> int:
    """A seed below 2**31 from the text of `parts`, e.g. the run's seed and a network's key.

    Every generator takes seeds of this size (NumPy's legacy one no larger).
    """
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big") >> 1
