"""What is tried suits the images, and begins with the space's own recipe."""

from __future__ import annotations

import pytest

from vitnas.config.data import DataConfig
from vitnas.config.training import ProxyConfig
from vitnas.config.trials import RandomTrial
from vitnas.engine.tuning.knobs import KNOBS, RANGES, Recipes

DIGITS = DataConfig(name="digits")
FOLDER = DataConfig(name="imagefolder", root="leaves")


def test_it_begins_with_the_own_recipe_and_a_ladder_of_rates() -> None:
    own, twice, half, muon, *far = Recipes(ProxyConfig(lr=6e-3), DIGITS, 1000).first()
    assert own == {
        "optimizer": "adamw", "lr": 6e-3, "weight_decay": 0.05, "batch_size": 32, "augment": "none",
    }  # fmt: skip
    assert twice == own | {"lr": pytest.approx(0.012)}
    assert half == own | {"lr": pytest.approx(0.003)}
    assert muon == own | {"optimizer": "muon", "lr": 0.016}
    assert far == [own | {"lr": pytest.approx(lr)} for lr in (0.024, 0.0015)]


def test_the_first_recipes_are_all_different() -> None:
    """One that is the space's own would be a recipe less."""
    for lr in (0.008, 0.016, 0.032):
        own = ProxyConfig(optimizer="muon", lr=lr)
        found = [params["lr"] for params in Recipes(own, DIGITS, 1000).first()]
        assert found == pytest.approx([lr, 2 * lr, lr / 2, min(4 * lr, 0.1), lr / 4])


def test_mirrored_digits_are_not_tried() -> None:
    assert Recipes(ProxyConfig(), DIGITS, 1000).choices()["augment"] == ("none", "shift")
    folder = Recipes(ProxyConfig(), FOLDER, 1000).choices()["augment"]
    assert set(folder) == {"none", "shift", "shift_flip", "crop_flip"}
    asked = Recipes(ProxyConfig(augment="shift_flip"), DIGITS, 1000).choices()["augment"]
    assert asked == ("none", "shift", "shift_flip")


@pytest.mark.parametrize(
    ("num_images", "sizes"), [(9, (24,)), (500, (16, 24, 32)), (10**6, (16, 24, 32, 64, 128, 256))]
)
def test_an_epoch_has_eight_steps(num_images: int, sizes: tuple[int, ...]) -> None:
    recipes = Recipes(ProxyConfig(batch_size=24), DIGITS, num_images)
    assert recipes.choices()["batch_size"] == sizes


def test_ranges_hold_the_own_values() -> None:
    own = ProxyConfig(lr=0.9, weight_decay=0.0)
    recipes = Recipes(own, DIGITS, 1000)
    assert recipes.ranges()["lr"] == (5e-4, 0.9)
    assert recipes.ranges()["weight_decay"] == RANGES["weight_decay"]
    first = next(recipes.first())
    assert (first["lr"], first["weight_decay"]) == (0.9, 0.005)


def test_a_draw_changes_what_is_tuned_and_nothing_else() -> None:
    own = ProxyConfig(epochs=7, label_smoothing=0.2)
    for seed in range(20):
        drawn = Recipes(own, DIGITS, 1000).suggest(RandomTrial(seed))
        assert drawn == ProxyConfig.model_validate(drawn.model_dump())
        changed = {
            name for name in ProxyConfig.model_fields if getattr(drawn, name) != getattr(own, name)
        }
        assert changed <= set(KNOBS)
        assert drawn.lr == float(f"{drawn.lr:.2g}")
        assert drawn.augment in ("auto", "shift")
