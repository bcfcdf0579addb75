"""A guess of how long a training takes."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch

from tests.engine.conftest import make_space
from vitnas.cost.survey import median_network
from vitnas.training.data import load_data
from vitnas.training.proxy import ProxyTraining
from vitnas.training.timing import seconds_between, seconds_of_training


def test_the_guess_is_of_the_right_size_and_leaves_no_trace() -> None:
    space = make_space()
    config, proxy = median_network(space), space.config.proxy
    assert config is not None
    images = load_data(space.config.data, config.image_hw)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    guess = seconds_of_training(config, proxy, images, threads=1)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    started = time.perf_counter()
    list(ProxyTraining(config, proxy, images, 0, "cpu"))
    assert guess is not None
    assert 0.1 < guess / (time.perf_counter() - started) < 10


def test_folds_are_trained_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    space = make_space()
    config = median_network(space)
    assert config is not None
    images = load_data(space.config.data, config.image_hw)
    monkeypatch.setattr("time.perf_counter", iter(range(10_000)).__next__)
    guesses = [
        seconds_of_training(config, space.config.proxy, replace(images, folds=folds))
        for folds in (1, 4)
    ]
    assert guesses[0]
    assert guesses[1] == 4 * guesses[0]


def test_a_space_without_a_network_within_its_limits_has_no_median() -> None:
    assert median_network(make_space(limits={"flops": {"max": 10}})) is None


def test_between_two_sizes_time_grows_along_a_line_of_logs() -> None:
    ends = (1e4, 1.0), (1e6, 4.0)
    assert [seconds_between(flops, ends) for flops in (1e4, 1e5, 1e6)] == pytest.approx([1, 2, 4])
    assert seconds_between(1e4, ((1e4, 3.0), (1e4, 3.0))) == 3.0
