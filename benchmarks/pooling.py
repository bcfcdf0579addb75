"""What the low-pass filter behind max pooling costs a training step on the CPU.

Forward and backward pass of networks by hand with `pooling: max` and `max_blur`, 64 images, one
thread. Both take turns, and the ratio is the median over the rounds, of processor time. `FLOPs` is
the ratio that the filter should cost.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from blocks import plain
from by_hand import NETWORKS, crelu
from common import Figures, conclude, is_quick, rounded, show

BATCH = 64
TRIED: dict[str, Any] = {
    "8, 12, 24; crelu, no blocks": crelu(8, 12, 24, skip=True),
    "16, 32, 64; pools": NETWORKS["16, 32, 64; pools"],
    "the same, attention in the last stage": NETWORKS["16, 32, 64; pools, attention in the last"],
    "16, 32, 64 at 64 px": plain((16, 32, 64), 64),
}


def ratios(model: dict[str, Any], rounds: int) -> tuple[float, float]:
    """Time and FLOPs of a network with the filter, as ratios to the same network without it."""
    import torch
    import torch.nn.functional as F

    from vitnas.config.model import ModelConfig
    from vitnas.cost.closed_form import closed_form
    from vitnas.nn.model import build_model

    torch.set_num_threads(1)
    kinds = ("max", "max_blur")
    configs = [ModelConfig.model_validate(model | {"pooling": kind}) for kind in kinds]
    layout = {"memory_format": torch.channels_last}
    networks = [build_model(config).to(**layout).train() for config in configs]
    shape = (BATCH, configs[0].in_chans, *configs[0].image_hw)
    images, labels = torch.randn(shape).contiguous(**layout), torch.randint(0, 10, (BATCH,))

    def step(network: Any) -> float:
        network.zero_grad()
        started = time.process_time()
        F.cross_entropy(network(images), labels).backward()
        return time.process_time() - started

    times = [[step(network) for network in networks] for _ in range(rounds + 2)][2:]
    without, blurred = (closed_form(config).flops for config in configs)
    return statistics.median(after / before for before, after in times), blurred / without


def main() -> None:
    quick = is_quick(__doc__)
    found = {name: ratios(model, 3 if quick else 25) for name, model in TRIED.items()}
    show(
        ("network", "time", "FLOPs"),
        [(name, f"{spent:.2f}", f"{flops:.2f}") for name, (spent, flops) in found.items()],
    )
    figures: Figures = {name: rounded(spent) for name, (spent, _) in found.items()}
    figures = {**figures, "most": rounded(max(spent for spent, _ in found.values()))}
    conclude("pooling", quick, figures, {"most": {"max": 3.0 if quick else 2.0}})


if __name__ == "__main__":
    main()
