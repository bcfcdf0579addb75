"""The loss around a network: directions as long as the filters, the network in the middle."""

from __future__ import annotations

import json
from itertools import count, pairwise
from typing import Any

import numpy as np
import pytest
import timm
import torch
from torch import Tensor, nn

from tests.diagnose.networks import CONV, MHSA, network, pictures
from vitnas.diagnose.landscape import (
    axis_of,
    direction_of,
    landscape_finding,
    losses_around,
    reach,
)
from vitnas.errors import ConfigError, VitnasError
from vitnas.nn.graft import graft
from vitnas.seeds import derive_seed
from vitnas.training.split import Split


def labelled(number: int = 6, channels: int = 1, side: int = 8) -> Split:
    """Images whose normalised pixels are those of `pictures`, of ten classes."""
    x = (40 * pictures(number, channels, side) + 128).clamp(0, 255).to(torch.uint8)
    moment = torch.full((channels, 1, 1), 100.0)
    return Split(x, torch.arange(number) % 10, moment, moment)


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def same(before: dict[str, Tensor], model: nn.Module) -> bool:
    after = model.state_dict()
    return before.keys() == after.keys() and all(
        torch.equal(tensor, after[name]) for name, tensor in before.items()
    )


@pytest.mark.parametrize("shape", [(5, 3), (4, 3, 2, 2), (6, 1, 3, 3), (1, 7, 4)])
def test_each_filter_of_a_direction_is_as_long_as_the_networks(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    growing = torch.arange(1.0, shape[0] + 1).reshape(-1, *[1] * len(shape[1:]))
    weight = torch.randn(shape, generator=generator) * growing
    weight[0] = 0
    drawn = direction_of(weight, generator)
    lengths = drawn.flatten(1).norm(dim=1)
    assert lengths.tolist() == pytest.approx(weight.flatten(1).norm(dim=1).tolist(), rel=1e-5)
    assert abs(float(torch.cosine_similarity(drawn.flatten(), weight.flatten(), dim=0))) < 0.9


def test_biases_and_norms_do_not_move() -> None:
    generator = torch.Generator().manual_seed(0)
    for weight in (torch.ones(4), torch.tensor(2.0)):
        assert not direction_of(weight, generator).any()


def test_the_middle_is_the_plain_loss_and_nothing_has_changed() -> None:
    model, images = network(CONV, MHSA, stem={"stride": 1}, residual="lrc"), labelled()
    before = state(model)
    expected = nn.functional.cross_entropy(model(images.normalise(images.x)), images.y).item()
    model.train()
    finding = landscape_finding(model, images, 10, 3)
    assert model.training
    assert same(before, model)
    assert finding.numbers["centre"] == pytest.approx(expected, abs=1e-5)
    assert finding.numbers["loss"][1][1] == finding.numbers["centre"]
    assert finding.numbers["axis"] == [-1, 0, 1]
    assert len({loss for row in finding.numbers["loss"] for loss in row}) == 9
    assert finding.figure is not None


def test_a_point_is_the_loss_with_the_weights_moved_there() -> None:
    """The network itself, moved by hand along the second direction."""
    model, images = network(MHSA), labelled()
    losses = losses_around(model, images, [0.0, 0.5], seed=3)
    generator = torch.Generator().manual_seed(derive_seed("landscape", 3))
    for _ in range(2):
        drawn = [direction_of(weight.detach(), generator) for weight in model.parameters()]
    with torch.no_grad():
        for weight, direction in zip(model.parameters(), drawn, strict=True):
            weight.add_(direction, alpha=0.5)
        moved = nn.functional.cross_entropy(model(images.normalise(images.x)), images.y)
    assert losses[0, 1] == pytest.approx(float(moved), rel=1e-5)


def test_the_seed_draws_the_directions() -> None:
    model, images = network(MHSA), labelled()
    first, again, other = (losses_around(model, images, [-1.0, 1.0], seed) for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).all()


def test_weights_are_as_before_when_it_is_interrupted() -> None:
    model, calls = network(MHSA), list[int]()
    before = state(model)

    def interrupt(*_: object) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    handle = model.stages[0].register_forward_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        losses_around(model, labelled(), axis_of(3), 0)
    handle.remove()
    assert same(before, model)
    assert all(isinstance(weight, nn.Parameter) for weight in model.parameters())


def test_a_loss_that_is_not_finite_is_null_and_the_networks_own_is_an_error() -> None:
    """A head that overflows above the largest score of the network itself."""
    model: Any = network(MHSA)
    images = labelled()
    most = 1.01 * float(model(images.normalise(images.x)).detach().abs().max())
    model.head.register_forward_hook(
        lambda _module, _inputs, scores: scores.where(scores.abs() <= most, torch.inf)
    )
    finding = landscape_finding(model, images, 10, 3)
    lost = finding.numbers["not_finite"]
    assert lost > 0
    assert f"{lost} of 9 points not finite" in finding.summary
    json.dumps(finding.numbers, allow_nan=False)
    with torch.no_grad():
        model.head.classifier.weight.fill_(torch.inf)
    with pytest.raises(VitnasError, match="loss of the network itself is not finite"):
        landscape_finding(model, images, 10, 3)


def bowl(slope: float, axis: list[float]) -> Any:
    """A cone: the loss rises by `slope` at a distance of 1."""
    a = np.array(axis)
    return 0.3 + slope * np.hypot(a[:, None], a[None])


def test_reach_is_the_distance_of_a_rise_by_one() -> None:
    axis = axis_of(21)
    for slope in (2.0, 4.0, 10.0):
        assert reach(bowl(slope, axis), axis) == pytest.approx(1 / slope, abs=1e-9)
    assert reach(bowl(0.5, axis), axis) == 1
    assert reach(np.where(bowl(1, axis) > 0.31, np.nan, 0.3), axis) == 0


@pytest.mark.slow
def test_a_flat_landscape_has_a_figure() -> None:
    """A head of zeros has directions of zeros, too."""
    model: Any = network(MHSA)
    with torch.no_grad():
        model.head.classifier.weight.zero_()
        model.head.classifier.bias.zero_()
    numbers = landscape_finding(model, labelled(), 10, 3).numbers
    assert numbers["centre"] == pytest.approx(np.log(10), abs=1e-5)
    assert numbers["reach"] == 1


def test_an_axis_has_a_middle() -> None:
    axis = axis_of(21)
    assert (axis[0], axis[10], axis[-1], len(axis)) == (-1, 0, 1, 21)
    assert all(before < after for before, after in pairwise(axis))
    for points, nearest in ((4, 5), (1, 3), (0, 3)):
        with pytest.raises(ConfigError, match=rf"--points = {points}: .*nearest: {nearest}\)"):
            axis_of(points)


@pytest.mark.parametrize(
    ("classes", "why"),
    [
        (None, "the images have no classes"),
        (3, "the network gives 10 scores and the images have 3 classes"),
    ],
)
def test_other_classes_are_refused(classes: int | None, why: str) -> None:
    with pytest.raises(VitnasError, match=why):
        landscape_finding(network(MHSA), labelled(), classes, 3)


def test_a_network_of_timm_with_a_graft() -> None:
    torch.manual_seed(0)
    host = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=10)
    graft(host, reattention_blocks=1)
    before = state(host)
    finding = landscape_finding(host, labelled(4, 3, 32), 10, 3)
    assert same(before, host)
    assert finding.numbers["not_finite"] == 0


def test_says_how_far_it_is_at_most_once_in_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a point takes two seconds by."""
    seconds = count(0, 2)
    monkeypatch.setattr("vitnas.diagnose.landscape.time.monotonic", lambda: next(seconds))
    lines = list[str]()
    landscape_finding(network(MHSA), labelled(2), 10, 3, notice=lines.append)
    assert lines == [
        "[3/9] points of landscape  (0:12 left)",
        "[6/9] points of landscape  (0:06 left)",
    ]
