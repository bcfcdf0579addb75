"""What may be said of the short training."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitnas.config.data import DATA_FACTS
from vitnas.config.files import validate
from vitnas.config.training import ProxyConfig
from vitnas.errors import ConfigError


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("epochs", 2.5),
        ("batch_size", 1),
        ("lr", 0.0),
        ("lr", "1e-3"),
        ("weight_decay", -0.1),
        ("warmup_epochs", -1.0),
        ("label_smoothing", 1.0),
        ("grad_clip", -1.0),
        ("augment", "mixup"),
        ("train_fraction", 0.0),
        ("train_fraction", 1.1),
        ("eval_batch_size", 0),
        ("lr", float("nan")),
        ("warmup_epochs", float("inf")),
        ("grad_clip", float("inf")),
    ],
)
def test_a_proxy_out_of_range_is_refused(field: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        validate(ProxyConfig, {field: value})
    assert caught.value.address == field


def test_configurations_are_frozen_and_hashable() -> None:
    assert hash(ProxyConfig()) == hash(ProxyConfig())
    with pytest.raises(ValueError):
        ProxyConfig().epochs = 3  # type: ignore[misc]


@given(st.sampled_from(sorted(DATA_FACTS)))
def test_auto_is_resolved_for_every_data_set(name: str) -> None:
    assert ProxyConfig().augment_for(name) not in ("auto", None)
    assert ProxyConfig(augment="none").augment_for(name) == "none"


def test_digits_are_never_mirrored_by_default() -> None:
    assert "flip" not in ProxyConfig().augment_for("digits")
