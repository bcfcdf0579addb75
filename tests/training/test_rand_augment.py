"""RandAugment on batches: timm's draws, and Pillow's pixels."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data.auto_augment import NAME_TO_OP, rand_augment_transform

from vitnas.training.device import own_all_randomness
from vitnas.training.rand_augment import _OPS, RandAugment, leave_bits

CPU = torch.device("cpu")
POLICY = "rand-m9-mstd0.5-inc1"
STRENGTHS = {
    "Posterize": 3,
    "Solarize": 100,
    "SolarizeAdd": 60,
    "Color": 1.6,
    "Contrast": 0.4,
    "Brightness": 1.5,
    "Sharpness": 1.8,
    "Rotate": 20.0,
    "ShearX": 0.25,
    "ShearY": -0.2,
    "TranslateXRel": 0.25,
    "TranslateYRel": -0.125,
    "Desaturate": 0.8,
    "GaussianBlur": 1.5,
}


def batch(number: int = 6, channels: int = 3, side: int = 32) -> torch.Tensor:
    """Smooth images, so that what lies between two pixels says little of the method."""
    seed = torch.Generator().manual_seed(0)
    small = torch.rand(number, channels, 6, 6, generator=seed)
    wide = torch.nn.functional.interpolate(small, (side, side + 8), mode="bicubic")
    return (wide * 255).clamp(0, 255).to(torch.uint8)


def pillow(image: torch.Tensor, name: str, *arguments: Any) -> torch.Tensor:
    function = NAME_TO_OP[name]
    found = function(
        Image.fromarray(image.permute(1, 2, 0).numpy()),
        *arguments,
        fillcolor=(128, 128, 128),
        resample=Image.Resampling.BILINEAR,
    )
    return torch.from_numpy(np.asarray(found).copy()).permute(2, 0, 1)


@pytest.mark.parametrize("name", sorted({n.removesuffix("Increasing") for n in _OPS}))
def test_an_operation_is_pillows(name: str) -> None:
    x, strength = batch(), STRENGTHS.get(name)
    level = torch.full((len(x), 1, 1, 1), 0.0 if strength is None else float(strength))
    ours = _OPS[name](x.float(), level).to(torch.uint8).int()
    arguments = () if strength is None else (strength,)
    theirs = torch.stack([pillow(image, name, *arguments) for image in x]).int()
    apart = (ours - theirs).abs()
    is_moved = name.startswith(("Rotate", "Shear", "Translate"))
    if is_moved:  # at the edges of what is seen, Pillow does not mix in the grey beyond
        assert float((apart > 6).float().mean()) < 0.08
    else:
        assert int(apart.max()) <= (4 if name == "GaussianBlur" else 1)
    assert not torch.equal(ours, x.int())


def test_the_draws_are_timm_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first operation of an image, and its strength. Then timm draws how to interpolate."""
    theirs: list[tuple[str, float]] = []
    ours: list[tuple[str, float]] = []

    def note(into: list[tuple[str, float]], name: str) -> Any:
        def operation(image: Any, *level: Any, **_: Any) -> Any:
            into.append((name, float(level[0]) if level else 0.0))
            return image

        return operation

    policy, own = rand_augment_transform(POLICY, {"img_mean": (128,) * 3}), RandAugment(POLICY)
    leave_bits(policy)
    for op in policy.ops:
        monkeypatch.setattr(op, "aug_fn", note(theirs, op.name))
    operations = {name: note(ours, name) for name in _OPS}
    monkeypatch.setattr("vitnas.training.rand_augment._OPS", operations)
    for seed in range(60):
        with own_all_randomness(seed, CPU):
            policy(Image.new("RGB", (8, 8)))
        with own_all_randomness(seed, CPU):
            own(batch(1))
        del theirs[seed + 1 :], ours[seed + 1 :]
        if len(theirs) <= seed:
            assert len(ours) <= seed
            theirs.append(("none", 0.0))
            ours.append(("none", 0.0))
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    assert [level for _, level in ours] == pytest.approx([level for _, level in theirs], rel=1e-6)
    assert len({name for name, _ in ours}) > 10


@pytest.mark.parametrize(
    "policy",
    [POLICY, "rand-m9-n3-mstd101-t3aw", "rand-m0-p1.0", "rand-tweights", "rand-m99-mmax99-inc0"],
)
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_every_policy_keeps_shape_and_type_and_repeats_itself(policy: str, channels: int) -> None:
    x = batch(24, channels, 8)
    augment, kept = RandAugment(policy), x.clone()
    found = []
    for seed in (1, 1, 2):
        with own_all_randomness(seed, CPU):
            found.append(augment(x))
    assert found[0].shape == x.shape
    assert found[0].dtype == torch.uint8
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    assert torch.equal(x, kept)


@pytest.mark.parametrize("policy", ["rand-m10", "rand-m0-inc1"])
def test_what_timm_solarizes_from_256_on_stays_as_it_is(policy: str) -> None:
    x = batch(64, 1, 8)
    with own_all_randomness(0, CPU):
        RandAugment(policy)(x)
    level = torch.full((64, 1, 1, 1), 256.0)
    assert torch.equal(_OPS["Solarize"](x.float(), level), x.float())


def test_every_image_is_changed_as_if_it_were_alone() -> None:
    x = batch(1).expand(16, -1, -1, -1)
    random.seed(0)
    np.random.seed(0)
    together = RandAugment(POLICY)(x)
    random.seed(0)
    np.random.seed(0)
    alone = torch.cat([RandAugment(POLICY)(image[None]) for image in x])
    assert torch.equal(together, alone)
    assert len({image.numpy().tobytes() for image in together}) > 8
