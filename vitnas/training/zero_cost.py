"""Scores of a network that take no training: one batch, at initialisation.

They are baselines of a calibration. Each is larger for networks that its authors expect to be
better. All of them grow with size, so they have to be judged among networks of similar FLOPs.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pixel_unshuffle

from vitnas.nn.layers.activation import SquaredReLU, StarReLU
from vitnas.nn.layers.inverted_residual import PointwiseConv
from vitnas.nn.layers.tokens import Grid, to_picture, to_tokens
from vitnas.nn.mixers.base import TokenMixer
from vitnas.nn.stage import Stage

BATCH = 64
"""Images that a score looks at."""
_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.Hardswish, StarReLU, SquaredReLU)
_BATCH_NORMS = nn.modules.batchnorm._BatchNorm
_NORMS = (nn.LayerNorm, nn.GroupNorm, _BATCH_NORMS)
Score = Callable[[nn.Module, Tensor, Tensor], float]


def zero_cost_scores(model: nn.Module, x: Tensor, y: Tensor) -> dict[str, tuple[float, float]]:
    """Every score by name, with the seconds that it took; only finite ones.

    The network stays as it was, and nothing random is drawn.

    Args:
        model: with its first weights.
        x: (B, C, H, W) normalised images on the model's device.
        y: (B,) their classes.
    """
    found = {}
    for name, score in SCORES.items():
        started = time.perf_counter()
        value = score(_still(model), x, y)
        if math.isfinite(value):
            found[name] = value, time.perf_counter() - started
    return found


def naswot(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """log |det K|, where K counts in how many units two images are on the same side of zero.

    Source: Mellor et al., "Neural Architecture Search without Training", ICML 2021, section 3. The
    units are the inputs of all activations, GELU's among them.
    """
    kernel = torch.zeros(len(x), len(x), dtype=torch.float64, device=x.device)

    def compare(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        code = (inputs[0] > 0).reshape(len(x), -1).float()
        kernel.add_(code @ code.T + (1 - code) @ (1 - code).T)

    with _hooked(_of(model, *_ACTIVATIONS), compare), torch.no_grad():
        model(x)
    return float(torch.linalg.slogdet(kernel).logabsdet)


def snip(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """log of the sum of |w dL/dw| over matrices and kernels, for the cross-entropy L.

    Source: Lee et al., "SNIP", ICLR 2019, Eq. 5; summed over the network as in Abdelfattah et al.,
    "Zero-Cost Proxies for Lightweight NAS", ICLR 2021, section 3.2.
    """
    cross_entropy(model(x).float(), y).backward()
    return _log(math.fsum(map(_saliency, _weights(model))))


def synflow(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """log of the sum of |w dR/dw| over matrices and kernels; R: the logits' sum for ones and |w|.

    Source: Tanaka et al., "Pruning neural networks without any data by iteratively conserving
    synaptic flow", NeurIPS 2020, Eq. 4, and Abdelfattah et al. Norms are left out: behind one, R
    does not depend on the scale of w, and the sum would be 0.
    """
    model = _flow(model, x)
    return _log(math.fsum(map(_saliency, _weights(model))))


def dss(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """log of: product of nuclear norms of W and dR/dW in token mixers, plus saliency elsewhere.

    Source: Zhou et al., "Training-free Transformer Architecture Search", CVPR 2022, Eqs. 5 to 7:
    synaptic diversity of attention and synaptic saliency of MLPs. R and norms are as in `synflow`.
    The paper's layers are linear ones. The 1x1 convolutions of an inverted residual do the same to
    each token and count, too. Blocks without any, such as pooling without an MLP, have no figure.
    """
    model = _flow(model, x)
    mixing = _matrices(_of(model, TokenMixer))
    all_in_blocks = _matrices(_blocks(model))
    others = [all_in_blocks[place] for place in all_in_blocks.keys() - mixing.keys()]
    return _log(math.fsum([*map(_diversity, mixing.values()), *map(_saliency, others)]))


def expressivity(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Sum over blocks of the entropy of the shares of the principal components of their outputs.

    Source: Lee and Ham, "AZ-NAS", CVPR 2024, Eqs. 1 to 3; on images, where they take Gaussian
    noise. It is one of the four parts of their score, see `az_nas` of a calibration.
    """
    with torch.no_grad():
        outputs = _features(model, x)[1:]
    return math.fsum(_entropy(output) for output, _ in outputs) if outputs else math.nan


def progressivity(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """The smallest rise of that entropy from one block to the next.

    Source: AZ-NAS, and its authors' code. What enters the first block counts as the output of
    a block before it, so that a network of one block has a figure.
    """
    with torch.no_grad():
        entropies = [_entropy(feature) for feature, _ in _features(model, x)]
    return min((after - before for before, after in pairwise(entropies)), default=math.nan)


def trainability(model: nn.Module, x: Tensor, y: Tensor) -> float:
    """Mean over blocks of 2 - s - 1 / s, where s is the spectral norm of what a block does to a
    gradient; 0, the most, where it keeps the gradient's length.

    Source: AZ-NAS, and its authors' code. The gradient at the block's output is of random
    signs, so the mean over tokens of its outer product with the gradient at the output of the block
    before is this linear map. Where a stage halves the grid, four tokens count as one of four times
    the channels. The first block has what enters it, as in `progressivity`.
    """
    features = _features(model, x)
    draw = torch.Generator(x.device).manual_seed(0)
    found = []
    for (before, grid_before), (after, grid) in pairwise(features):
        signs = torch.randint(2, after.shape, generator=draw, device=x.device) * 2.0 - 1
        (gradient,) = torch.autograd.grad(after, before, signs, retain_graph=True)
        if grid != grid_before:
            prefix = signs.shape[1] - math.prod(grid)
            signs = signs[:, prefix:]
            picture = to_picture(gradient[:, prefix:], grid_before)
            gradient = to_tokens(pixel_unshuffle(picture, grid_before[0] // grid[0]))
        outer = gradient.flatten(0, 1).T @ signs.flatten(0, 1) / signs[..., 0].numel()
        norm = float(torch.linalg.matrix_norm(outer, 2))
        found.append(2 - norm - 1 / norm if norm else -math.inf)
    return math.fsum(found) / len(found) if found else math.nan


SCORES: dict[str, Score] = {
    "naswot": naswot,
    "snip": snip,
    "synflow": synflow,
    "dss": dss,
    "az_expressivity": expressivity,
    "az_progressivity": progressivity,
    "az_trainability": trainability,
}


def _still(model: nn.Module) -> nn.Module:
    """A copy without dropout, in which batch norm takes the batch's own statistics."""
    model = copy.deepcopy(model).eval()
    for norm in _of(model, _BATCH_NORMS):
        norm.train()
    return model


def _flow(model: nn.Module, x: Tensor) -> nn.Module:
    """The network in float64 with |w| for w, without norms, after the backward pass of R."""
    model = model.double().eval()
    for parameter in model.parameters():
        parameter.data.abs_()
    ones = torch.ones_like(x[:1], dtype=torch.float64)
    with _hooked(_of(model, *_NORMS), lambda module, inputs, output: inputs[0]):
        model(ones).sum().backward()
    return model


@contextmanager
def _hooked(modules: Iterable[nn.Module], hook: Callable[..., object]) -> Iterator[None]:
    handles = [module.register_forward_hook(hook) for module in modules]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _of(model: nn.Module, *kinds: type[nn.Module]) -> list[nn.Module]:
    return [module for module in model.modules() if isinstance(module, kinds)]


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of all stages; one that is passed through several times is one block."""
    return [
        block for stage in model.modules() if isinstance(stage, Stage) for block in stage.blocks
    ]


def _features(model: nn.Module, x: Tensor) -> list[tuple[Tensor, Grid]]:
    """What enters the first block, then the output of each block, `(B, N, C)`, with its grid."""
    found: list[tuple[Tensor, Grid]] = []

    def look(module: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        tokens, grid = inputs[:2]
        found.extend([(output, grid)] if found else [(tokens, grid), (output, grid)])

    with _hooked(_blocks(model), look):
        model(x)
    return found


def _entropy(feature: Tensor) -> float:
    """Entropy of the shares of the principal components, in nats."""
    tokens = feature.detach().double().flatten(0, -2)
    spread = torch.linalg.eigvalsh(torch.cov(tokens.T)).clamp_min(0)
    return float(torch.special.entr(spread / spread.sum()).sum())


def _matrices(inside: Iterable[nn.Module]) -> dict[int, Tensor]:
    """The weights of linear layers and 1x1 convolutions inside these modules, each once."""
    layers = [layer for module in inside for layer in module.modules()]
    return {id(m.weight): m.weight for m in layers if isinstance(m, (nn.Linear, PointwiseConv))}


def _weights(model: nn.Module) -> list[Tensor]:
    return [w for w in model.parameters() if w.ndim > 1 and w.grad is not None]


def _saliency(weight: Tensor) -> float:
    return 0.0 if weight.grad is None else float((weight.detach() * weight.grad).abs().sum())


def _diversity(weight: Tensor) -> float:
    if weight.grad is None:
        return 0.0
    matrices = (w.detach().flatten(1) for w in (weight, weight.grad))
    norms = [torch.linalg.matrix_norm(matrix, "nuc") for matrix in matrices]
    return float(norms[0] * norms[1])


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
