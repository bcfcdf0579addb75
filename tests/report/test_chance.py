"""What a random search would have reached: against a space whose true top-1 is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import log
from pathlib import Path

import numpy as np
import pytest

from tests.report.runs import ENVIRONMENT, run_of, trial
from tests.report.test_effects import run as made_up
from tests.report.test_effects import truth
from vitnas.pareto import front_ranks, hypervolume
from vitnas.records import TrialRecord
from vitnas.report import chance, effects
from vitnas.report.chance import chance_of
from vitnas.report.figures import epochs_figure, gpu_figure, seconds_figure
from vitnas.report.page import render_pages
from vitnas.report.progress import corner_of
from vitnas.run import Run

Points = list[tuple[float, float]]


def by(sampler: str, source: Run, trials: list[TrialRecord]) -> Run:
    """A run whose trials these are, as if this sampler had proposed them."""
    told = {**ENVIRONMENT, "data": dict(ENVIRONMENT["data"]) | {"num_val_images": 4000}}
    told["sessions"] = [told["sessions"][0] | {"sampler": sampler}]
    trials = [replace(one, number=number) for number, one in enumerate(trials)]
    return run_of(source.path, *trials, name="digits", space=source.space, environment=told)


def points_of(trials: list[TrialRecord]) -> Points:
    """The truth of networks, to minimise."""
    return [(-truth(one.network, one.flops), log(one.flops)) for one in trials]


@cache
def searched(seed: int) -> tuple[Run, Points, float]:
    """40 networks of 160, those of the best true ranks, as a search would have found them; the
    truth of all 160; and the true share of hypervolume of 40 random ones."""
    drawn = list(made_up(160, seed).trials)
    everything = points_of(drawn)
    best = np.argsort(front_ranks(everything), kind="stable")[:40]
    run = by("ehvi", made_up(160, seed), [drawn[place] for place in best.tolist()])
    corner = corner_of([run])
    whole = hypervolume([everything[place] for place in best.tolist()], corner)
    random = np.random.default_rng(seed)
    sets = (random.permutation(160)[:40].tolist() for _ in range(200))
    shares = [hypervolume([everything[place] for place in one], corner) / whole for one in sets]
    return run, everything, float(np.median(shares))


def test_the_true_share_is_in_the_interval() -> None:
    run, _, wanted = searched(0)
    found = chance_of(run)
    assert found is not None
    assert found.networks[-1] == 40
    assert found.low[-1] < wanted < found.high[-1]
    assert found.high[-1] - found.low[-1] < 0.4


@pytest.mark.slow
def test_over_several_runs_as_docs_engine_has_it() -> None:
    """A run that saw only the best networks thinks too well of the others, by little."""
    off, inside = list[float](), 0
    for seed in range(10):
        run, _, wanted = searched(seed)
        found = chance_of(run)
        assert found is not None
        off.append(found.median[-1] - wanted)
        inside += found.low[-1] < wanted < found.high[-1]
    print(f"inside {inside} of 10, median off by {np.mean(off):.3f}")
    assert inside >= 6
    assert 0 < np.mean(off) < 0.1


def test_it_grows_with_the_networks_and_is_the_same_each_time() -> None:
    run, *_ = searched(0)
    found = chance_of(run)
    assert found is not None
    for line in (found.low, found.median, found.high):
        assert list(line) == sorted(line)
    assert all(a <= b <= c for a, b, c in zip(found.low, found.median, found.high, strict=True))
    assert chance_of(run) == found


@pytest.mark.slow
def test_both_pages_and_the_plot_have_it() -> None:
    run, *_ = searched(0)
    found = chance_of(run)
    assert found is not None
    pages = render_pages(run, b"")
    text = f"A random search of 40 networks, each trained for all {run.epochs} epochs"
    assert text in pages.markdown
    assert text in pages.html
    assert "the band holds 90 % of them" in pages.html
    figure = epochs_figure(run, found)
    assert figure is not None
    line = figure.data[1]
    assert line["name"] == "random search, by the model"
    assert line["x"][-1] == 40 * run.epochs


@pytest.mark.slow
def test_over_time_a_random_network_takes_the_mean_of_the_runs_own() -> None:
    run, *_ = searched(0)
    found = chance_of(run)
    half = run.environment.last.model_copy(update={"gpus_per_trial": 0.5})
    on_gpu = replace(run, environment=run.environment.model_copy(update={"sessions": [half]}))
    time, gpu = seconds_figure(run, found), gpu_figure(on_gpu, found)
    for figure, minutes in ((time, 12.5 / 60), (gpu, 6.25 / 60)):
        assert figure is not None
        band, line = figure.data[:2]
        assert line["name"] == "random search, by the model"
        assert line["x"][-1] == pytest.approx(40 * minutes, abs=1e-3)
        assert max(band["x"]) == line["x"][-1]
        assert f"counts {minutes:.3g} " in figure.note
        assert "an estimate" in figure.note
    page = render_pages(on_gpu, b"").html
    assert page.count("an estimate, because random networks may be larger or smaller") == 2


def test_where_nothing_can_be_said() -> None:
    whole, *_ = searched(0)
    trials = list(whole.trials)
    assert chance_of(by("random", whole, trials)) is None
    assert chance_of(by("ehvi", whole, trials[:9])) is None
    measured = {**whole.space, "objectives": {"top1": "maximize", "latency_ms": "minimize"}}
    assert chance_of(replace(whole, space=measured)) is None
    assert chance_of(replace(whole, space={**whole.space, "model": {}})) is None
    assert chance_of(run_of(Path("results/a"), *(trial(n, 50.0) for n in range(12)))) is None


def test_no_network_is_drawn_twice_and_no_more_than_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, *_ = searched(0)
    drawn = chance._drawn(run, 60)
    assert len({config.key for config, _ in drawn.values()}) == 60
    monkeypatch.setattr(chance, "_MOST_TRIES", 20)
    found = chance_of(run)
    assert found is not None
    assert found.networks[-1] < 40


def test_another_packages_mixer_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    run, *_ = searched(0)
    monkeypatch.setattr(effects, "MIXERS", {})
    assert chance_of(run) is None
