"""Augmentation: what it may change, what it must keep, and that it is random by its generator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vitnas.config.data import Augment
from vitnas.config.model import ModelConfig
from vitnas.config.recipe import Recipe
from vitnas.config.training import ProxyConfig
from vitnas.training.augment import (
    augment_batch,
    augmentation_of,
    color_jitter,
    dealt,
    random_crop,
    random_flip,
    random_shift,
)
from vitnas.training.device import own_all_randomness
from vitnas.training.images import Images
from vitnas.training.proxy import ProxyTraining

KINDS: list[Augment] = ["none", "shift", "shift_flip", "crop_flip"]


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _batch(number: int = 16, side: int = 8, channels: int = 3) -> torch.Tensor:
    size = (number, channels, side, side)
    return torch.randint(1, 256, size, generator=_generator(9), dtype=torch.uint8)


@pytest.mark.parametrize("kind", KINDS)
@given(st.integers(1, 5), st.sampled_from([1, 3]), st.integers(2, 12), st.integers(2, 12))
@settings(max_examples=20, deadline=None)
def test_shape_and_type_are_kept(
    kind: Augment, number: int, channels: int, height: int, width: int
) -> None:
    x = torch.full((number, channels, height, width), 7, dtype=torch.uint8)
    result = augment_batch(kind, x, _generator(), 0.35)
    assert result.shape == x.shape
    assert result.dtype == torch.uint8


@pytest.mark.parametrize("kind", KINDS[1:])
def test_randomness_is_the_generators_alone(kind: Augment) -> None:
    x = _batch()
    before = torch.get_rng_state()
    one, same, other = (augment_batch(kind, x, _generator(seed), 0.35) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(x, _batch())


@pytest.mark.parametrize("kind", KINDS[1:])
def test_images_of_a_batch_are_changed_apart(kind: Augment) -> None:
    x = _batch(1).expand(32, -1, -1, -1)
    changed = augment_batch(kind, x, _generator(), 0.35)
    assert len({image.numpy().tobytes() for image in changed}) > 4


def test_a_flip_gives_the_image_or_its_mirror_each_about_half_the_time() -> None:
    x = _batch(400, 4)
    flipped = random_flip(x, _generator())
    kept = (flipped == x).flatten(1).all(1)
    mirrored = (flipped == x.flip(-1)).flatten(1).all(1)
    assert (kept ^ mirrored).all()
    assert 150 < int(kept.sum()) < 250


def test_a_shift_is_one_of_the_nine_shifts_of_a_digit_and_fills_with_zeros() -> None:
    x = _batch(500, 8, 1)
    shifted = random_shift(x, _generator())
    padded = torch.nn.functional.pad(x, (1, 1, 1, 1))
    possible = torch.stack(
        [padded[:, :, dy : dy + 8, dx : dx + 8] for dy in range(3) for dx in range(3)]
    )
    hits = (possible == shifted).flatten(2).all(2)
    assert (hits.sum(0) == 1).all()
    assert (hits.sum(1) > 20).all()


@pytest.mark.parametrize(("side", "reach"), [(4, 1), (8, 1), (28, 3), (32, 4)])
def test_a_shift_reaches_an_eighth_of_the_side(side: int, reach: int) -> None:
    x = torch.full((200, 1, side, side), 255, dtype=torch.uint8)
    empty = (random_shift(x, _generator()) == 0).all(3).squeeze(1).sum(1)
    assert int(empty.max()) == reach


def test_a_crop_keeps_a_constant_image_and_the_range_of_any_other() -> None:
    flat = torch.full((8, 3, 9, 9), 200, dtype=torch.uint8)
    assert torch.equal(random_crop(flat, 0.35, _generator()), flat)
    x = torch.randint(50, 100, (64, 3, 16, 16), generator=_generator(), dtype=torch.uint8)
    cropped = random_crop(x, 0.35, _generator())
    assert cropped.min() >= 50
    assert cropped.max() < 100


def test_a_crop_magnifies_but_does_not_leave_the_image() -> None:
    ramp = torch.arange(0, 64, dtype=torch.uint8).expand(100, 1, 64, 64)
    cropped = random_crop(ramp, 0.35, _generator()).float().flatten(1)
    spread = cropped.amax(1) - cropped.amin(1)
    assert spread.max() <= 63
    assert spread.min() > 20
    assert spread.mean() < 60


@pytest.mark.slow
@pytest.mark.parametrize("smallest", [0.08, 0.35, 1.0])
def test_crops_have_the_area_that_the_recipe_says(smallest: float) -> None:
    """Two ramps, along x and y: their spread is a crop's width and height."""
    side = 256
    ramp = torch.arange(side, dtype=torch.uint8).expand(side, side)
    cropped = random_crop(
        torch.stack([ramp, ramp.T]).expand(400, -1, -1, -1), smallest, _generator()
    )
    sides = (cropped.float().flatten(2).amax(2) - cropped.float().flatten(2).amin(2)) / (side - 1)
    area = sides.prod(1)
    assert smallest - 0.02 < area.min() < smallest + 0.03
    assert 0.95 < area.max() <= 1


def test_a_recipe_crops_as_timm_and_a_proxy_less() -> None:
    x = torch.randint(256, (64, 3, 16, 16), generator=_generator(), dtype=torch.uint8)
    recipe, proxy = Recipe(augment="crop_flip"), ProxyConfig(augment="crop_flip")
    for how, scale in ((recipe, 0.08), (proxy, 0.35)):
        found = augmentation_of(how, "imagefolder")(x, _generator())
        assert torch.equal(found, augment_batch("crop_flip", x, _generator(), scale))


def test_colour_jitter_changes_each_image_by_its_own_factors() -> None:
    x = _batch(1).expand(16, -1, -1, -1)
    assert color_jitter(x, 0.0, _generator()) is x
    changed = color_jitter(x, 0.4, _generator())
    assert changed.dtype == torch.uint8
    assert len({image.numpy().tobytes() for image in changed}) == 16
    assert torch.equal(changed, color_jitter(x, 0.4, _generator()))
    flat = torch.full((200, 3, 4, 4), 100, dtype=torch.uint8)
    means = color_jitter(flat, 0.4, _generator()).float().mean((1, 2, 3))
    assert 59.5 < float(means.min()) < 65, "grey images have brightness alone to lose"
    assert 135 < float(means.max()) < 140.5


def test_a_recipe_does_one_after_the_other() -> None:
    x = _batch()
    recipe = Recipe(augment="shift_flip", rand_augment="rand-m9-p1.0")
    with own_all_randomness(5, torch.device("cpu")):
        found = augmentation_of(recipe, "digits")(x, _generator())
    shifted = augment_batch("shift_flip", x, _generator(), 0.35)
    assert not torch.equal(found, shifted)
    with own_all_randomness(5, torch.device("cpu")):
        again = augmentation_of(Recipe(augment="none", rand_augment="rand-m9-p1.0"), "digits")(
            shifted, _generator()
        )
    assert torch.equal(found, again)
    assert torch.equal(augmentation_of(Recipe(augment="none"), "digits")(x, _generator()), x)


@given(st.integers(1, 50), st.integers(1, 5))
def test_an_epoch_has_as_many_images_with_copies(number: int, copies: int) -> None:
    numbers = dealt(number, copies, _generator())
    images, copy = numbers % number, numbers // number
    assert len(numbers) == number
    assert len(numbers.unique()) == number, "every copy of an image once"
    assert len(images.unique()) == -(-number // copies)
    assert int(copy.max()) < copies
    together = images[: number // copies * copies].view(-1, copies)
    assert (together == together[:, :1]).all(), "in one step, and so in one batch"
    order = torch.randperm(number, generator=_generator())
    assert torch.equal(dealt(number, 1, _generator()), order), "as ever"


@pytest.mark.parametrize("changes", [{"augment": "shift"}, {"color_jitter": 0.5}])
def test_the_last_epochs_show_images_as_they_are_scored(
    tiny_config: ModelConfig, digits: Images, changes: dict[str, Any]
) -> None:
    proxy = ProxyConfig.model_validate({"epochs": 3, "no_augment_epochs": 2, **changes})
    training = ProxyTraining(tiny_config, proxy, digits, seed=0)
    plain = digits.train.normalise(digits.train.x)
    for epoch, is_plain in ((1, False), (2, True), (3, True)):
        shown = torch.cat([batch.x for batch in training._batches(epoch)])
        assert torch.equal(shown.flatten(1).sort(0)[0], plain.flatten(1).sort(0)[0]) == is_plain


def test_the_last_epochs_mix_and_copy_no_image(tiny_config: ModelConfig, digits: Images) -> None:
    fields = {"mixup": 0.8, "random_erasing": 1.0, "repeated_augmentation": 3}
    proxy = ProxyConfig.model_validate({"epochs": 2, "no_augment_epochs": 1, **fields})
    training = ProxyTraining(tiny_config, proxy, digits, seed=0)
    for epoch, changed in ((1, True), (2, False)):
        training._objective.begin(proxy.in_epoch(epoch))
        batches = list(training._batches(epoch))
        shown = len(torch.cat([batch.x for batch in batches]).flatten(1).unique(dim=0))
        assert (shown < 0.5 * len(digits.train)) == changed
        before = batches[0].x.clone()  # images are mixed in place
        mixed = training._objective.mixed(batches[0])
        assert torch.equal(mixed.x, before) != changed
        assert mixed.y.is_floating_point() == changed
