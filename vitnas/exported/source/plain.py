"""A baseline as plain layers, one after the other: `vgg` and `dwcnn`, for model.py."""

from __future__ import annotations

import torch
from torch import nn

from vitnas.baselines.families import build_baseline
from vitnas.config.baseline import Baseline


def plain_layers(baseline: Baseline) -> list[str]:
    """Its layers, each as a Python expression; none where the family has other blocks."""
    with torch.random.fork_rng(devices=[]), torch.device("meta"):
        network = build_baseline(baseline)
    layers = [_expression(layer) for layer in network.children()]
    return layers if type(network) is nn.Sequential and all(layers) else []


def _expression(layer: nn.Module) -> str:
    """A layer as Python; empty where model.py has no words for it."""
    if isinstance(layer, nn.Sequential):
        return _convolution(*layer) if len(layer) == 3 else ""
    if isinstance(layer, nn.Linear):
        return f"nn.Linear({layer.in_features}, {layer.out_features})"
    if isinstance(layer, nn.MaxPool2d):
        return f"nn.MaxPool2d({layer.kernel_size})"
    if isinstance(layer, nn.AdaptiveAvgPool2d):
        return f"nn.AdaptiveAvgPool2d({layer.output_size})"
    return "nn.Flatten()" if isinstance(layer, nn.Flatten) else ""


def _convolution(conv: nn.Module, norm: nn.Module, act: nn.Module) -> str:
    if not isinstance(conv, nn.Conv2d) or (type(norm), type(act)) != (nn.BatchNorm2d, nn.ReLU):
        return ""
    stride, groups = conv.stride[0], conv.groups
    text = f"convolution({conv.in_channels}, {conv.out_channels}, {conv.kernel_size[0]}"
    text += f", stride={stride}" if stride > 1 else ""
    text += f", groups={groups}" if groups > 1 else ""
    return f"{text})"
