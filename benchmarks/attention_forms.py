"""The forms of attention in training on a CPU: processor time by keys and channels of a head.

`fused` is PyTorch's, `padded` the same with zeros up to 16 channels where they pay (elsewhere it is
`fused`), `map` writes the map out. A step is forward and backward of 64 images and four heads, on
one thread; the forms take turns, and the least of several times counts. `taken` is the form that
`AttentionMixer` takes; a ratio says how many times faster it is than the fused one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from common import conclude, is_quick, rounded, show
from torch import Tensor

from vitnas.nn.layers.fused import fused_attention, map_is_faster

BATCH, HEADS = 64, 4
KEYS, CHANNELS = (4, 9, 16, 25, 36, 49, 64, 256), (8, 16, 32)
Form = Callable[[Tensor, Tensor, Tensor], Tensor]


def fused(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return fused_attention(query, key, value, scale=query.shape[-1] ** -0.5)


def padded(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return fused_attention(query, key, value, scale=query.shape[-1] ** -0.5, pad=True)


def written(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    logits = (query.shape[-1] ** -0.5 * query) @ key.transpose(-2, -1)
    return logits.softmax(dim=-1) @ value


def seconds(form: Form, keys: int, channels: int) -> float:
    """Of a step, by the processor's clock; tokens lie as a projection leaves them."""
    tokens = torch.randn(BATCH, keys, 3 * HEADS * channels, requires_grad=True)
    ahead = torch.randn(BATCH, keys, HEADS * channels)
    started = time.process_time()
    parts = tokens.view(BATCH, keys, 3, HEADS, channels).permute(2, 0, 3, 1, 4)
    form(parts[0], parts[1], parts[2]).transpose(1, 2).flatten(2).backward(ahead)
    return time.process_time() - started


def main() -> None:
    quick = is_quick(__doc__)
    torch.set_num_threads(1)
    forms: dict[str, Form] = {"fused": fused, "padded": padded, "map": written}
    figures: dict[str, float] = {}
    rows = []
    for channels in CHANNELS[:1] if quick else CHANNELS:
        for keys in KEYS[:2] if quick else KEYS:
            least = dict.fromkeys(forms, float("inf"))
            for _ in range(2 if quick else 20):
                for name, form in forms.items():
                    least[name] = min(least[name], seconds(form, keys, channels))
            as_map = map_is_faster(torch.empty(BATCH, HEADS, keys, channels))
            taken = "map" if as_map else "padded"
            faster = least["fused"] / least[taken]
            figures[f"{keys} keys, {channels} channels"] = rounded(faster)
            times = (f"{1e3 * least[name]:.2f}" for name in forms)
            rows.append((str(keys), str(channels), *times, taken, f"{faster:.2f}x"))
    show(("keys", "channels", *(f"{name}, ms" for name in forms), "taken", "fused / taken"), rows)
    figures["slowest_ratio"] = min(figures.values())
    conclude("attention_forms", quick, figures, {"slowest_ratio": {"min": 0.95}})


if __name__ == "__main__":
    main()
