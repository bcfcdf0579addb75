"""Each family of baselines has a learning rate of its own; a stopped run finds the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from math import log2
from pathlib import Path

from tests.engine.test_baselines import (
    DONE,
    EPOCHS,
    PROXY,
    Answers,
    Repeats,
    baselines,
    members,
    nothing_to_compare,
)
from vitnas.config.baseline import Baseline
from vitnas.engine.batch.book import Book, read_entries
from vitnas.engine.batch.references import FILE_NAME, read_baselines
from vitnas.engine.batch.request import Answer, Request
from vitnas.records import Outcome
from vitnas.versus import counting


def of_rates(best: Mapping[str, float], top1: Mapping[str, float] | None = None) -> Answers:
    """Trainings whose top-1 falls by ten points with each doubling from the best rate of their
    network or family, where it is that of the same or 90; from 0.1 on they diverge."""

    def answers(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for request in requests:
            assert isinstance(request.subject, Baseline)
            name, family, levels = request.subject.name, request.subject.family, top1 or {}
            off = abs(log2(request.proxy.lr / best.get(name, best.get(family, 1))))
            level = levels.get(name, levels.get(family, 90.0))
            curve = (max(0.0, level - 10 * off),) * EPOCHS
            failed = Answer(outcome=Outcome.DIVERGED, error="loss is nan")
            done = DONE.model_copy(update={"curve": curve, "test_top1": curve[0] / 2})
            yield request, failed if request.proxy.lr > 0.1 else done

    return answers


def failing(outcome: Outcome) -> Answers:
    """Trainings that all end in this way."""

    def answers(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        return ((request, Answer(outcome=outcome, error="it failed")) for request in requests)

    return answers


def test_each_family_has_the_rate_that_its_own_member_climbs_to(tmp_path: Path) -> None:
    own = 0.008
    best = {"vgg": 4 * own, "dwcnn": own, "mobilenet": own / 2}
    proxy, some = PROXY.at_rate(own), members(12)
    baselines(tmp_path, of_rates(best), some=some, proxy=proxy).train(nothing_to_compare)
    found = read_baselines(tmp_path)
    assert len(found) == len(some)
    for one in found:
        assert one.lr == best[one.family]
        assert (one.top1, one.test_top1) == (90.0, 45.0)
    tried = {one.family: [lr for lr, _ in one.rates] for one in found if one.rates}
    assert tried == {
        "vgg": [own / 2, own, 2 * own, 4 * own, 8 * own],
        "dwcnn": [own / 2, own, 2 * own],
        "mobilenet": [own / 4, own / 2, own, 2 * own],
    }
    assert sum(bool(one.rates) for one in found) == 3, "one member of each family"


LR = PROXY.lr
SMALLEST, *_, LARGEST = (one.baseline.name for one in members(12) if one.baseline.family == "vgg")
OWN = {"vgg": 2 * LR, "dwcnn": LR, "mobilenet": LR / 4, SMALLEST: LR / 2, LARGEST: 8 * LR}
LEVELS = {"dwcnn": 60.0, "mobilenet": 55.0}


def test_what_decides_the_comparison_climbs_to_a_rate_of_its_own(tmp_path: Path) -> None:
    """So does the next best family. Of the third one only what is next best where they end."""
    run = Repeats(tmp_path)
    baselines(tmp_path, of_rates(OWN, LEVELS), some=members(12)).train(run.read)
    found = {one.name: one for one in read_baselines(tmp_path)}
    for name, one in found.items():
        assert one.lr == OWN.get(name, OWN[one.family])
    several = {name for name, one in found.items() if one.rates}
    assert {one.name for one in counting(run.read())} <= several
    climbed = Counter(found[name].family for name in several)
    assert climbed == {"vgg": 4, "dwcnn": 4, "mobilenet": 2}
    assert [lr for lr, _ in found[SMALLEST].rates] == [LR / 4, LR / 2, LR, 2 * LR, 4 * LR]


def test_the_second_best_may_be_the_best_at_a_rate_of_its_own(tmp_path: Path) -> None:
    """MobileNetV3's blocks had the rate of a small one, and were below `vgg` with it."""
    *_, large = (one.baseline.name for one in members(12) if one.baseline.family == "dwcnn")
    run = Repeats(tmp_path)
    best = {"vgg": LR, "dwcnn": LR, large: 4 * LR}
    answers = of_rates(best, {"vgg": 80.0, "dwcnn": 70.0, large: 90.0})
    baselines(tmp_path, answers, some=members(12)).train(run.read)
    found = {one.name: one for one in read_baselines(tmp_path)}
    assert (found[large].lr, found[large].top1) == (4 * LR, 90.0)
    assert large in {one.name for one in counting(run.read())}


def test_stopped_anywhere_it_climbs_as_if_it_had_not_been(tmp_path: Path) -> None:
    def after(number: int, folder: Path) -> list[str]:
        left = iter(range(number))
        run = Repeats(folder)

        def some_only(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
            answers = of_rates(OWN, LEVELS)(requests)
            return (pair for pair, _ in zip(answers, left, strict=False))

        with suppress(KeyboardInterrupt):
            baselines(folder, some_only, some=members(12)).train(run.read, 1)
        baselines(folder, of_rates(OWN, LEVELS), some=members(12)).train(run.read, 1)
        return sorted(entry.key for entry in read_entries(folder / FILE_NAME))

    whole = after(0, tmp_path / "whole")
    for number in range(1, len(whole), 3):
        assert after(number, tmp_path / str(number)) == whole


def test_what_diverges_at_the_rate_of_its_family_finds_its_own(tmp_path: Path) -> None:
    """It had been no baseline: the largest one is gone where its family's rate is too high."""
    answers = of_rates({"vgg": 2 * LR})

    def hot(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        for request, answer in answers(requests):
            assert isinstance(request.subject, Baseline)
            fails = request.subject.name == LARGEST and request.proxy.lr > LR
            lost = Answer(outcome=Outcome.DIVERGED, error="loss is nan")
            yield request, lost if fails else answer

    baselines(tmp_path, hot).train(nothing_to_compare)
    found = {one.name: one for one in read_baselines(tmp_path)}
    assert {name: one.lr for name, one in found.items() if name != LARGEST} == {
        name: 2 * LR for name in found if name != LARGEST
    }
    assert (found[LARGEST].lr, found[LARGEST].top1) == (LR, 80.0)
    assert [lr for lr, _ in found[LARGEST].rates] == [LR / 2, LR, 2 * LR, 4 * LR]


def test_a_family_that_diverges_at_all_rates_beside_the_recipe_s_goes_down(tmp_path: Path) -> None:
    """It had had no baseline: its members were all trained at a rate that diverges."""
    answers = of_rates({"vgg": LR / 8})

    def hot(requests: Iterable[Request]) -> Iterator[tuple[Request, Answer]]:
        lost = Answer(outcome=Outcome.DIVERGED, error="loss is nan")
        for request, answer in answers(requests):
            yield request, lost if request.proxy.lr > LR / 4 else answer

    baselines(tmp_path, hot).train(nothing_to_compare)
    found = read_baselines(tmp_path)
    assert {(one.family, one.lr, one.top1) for one in found} == {("vgg", LR / 8, 90.0)}
    tried = [[lr for lr, _ in one.rates] for one in found if one.rates]
    assert tried == [[LR / 8, LR / 4, LR / 2, LR, 2 * LR]]


def test_a_family_that_diverges_at_every_rate_is_trained_at_the_lowest(tmp_path: Path) -> None:
    baselines(tmp_path, failing(Outcome.DIVERGED)).train(nothing_to_compare)
    found = read_baselines(tmp_path)
    assert {(one.outcome, one.lr) for one in found} == {(Outcome.DIVERGED, LR / 8)}
    assert len(read_entries(tmp_path / FILE_NAME)) == len(members()) + 4


def test_a_family_whose_member_is_out_of_memory_keeps_the_recipe_s_rate(tmp_path: Path) -> None:
    baselines(tmp_path, failing(Outcome.OOM)).train(nothing_to_compare)
    found = read_baselines(tmp_path)
    assert {(one.outcome, one.lr) for one in found} == {(Outcome.OOM, LR)}
    assert len(read_entries(tmp_path / FILE_NAME)) == len(members()) + 2


def test_replicates_are_trained_at_the_rate_of_their_baseline(tmp_path: Path) -> None:
    best = {"vgg": 2 * PROXY.lr, "dwcnn": PROXY.lr / 2, "mobilenet": PROXY.lr}
    repeats = Repeats(tmp_path)
    baselines(tmp_path, of_rates(best), some=members(12)).train(repeats.read, 2)
    repeated = [one for one in repeats.read().baselines if one.replicates]
    assert repeated
    assert {one.trainings for one in repeated} == {(90.0,) * 3}


def test_a_run_of_an_older_version_is_trained_at_the_rates_of_its_families(tmp_path: Path) -> None:
    """It has all its baselines at the recipe's rate."""
    answers = of_rates({"vgg": 2 * PROXY.lr})
    old = baselines(tmp_path)
    for member in members():
        ((request, answer),) = answers([old._request(member, PROXY.lr)])
        Book(tmp_path / FILE_NAME).put(request, answer.model_copy(update={"flops": member.flops}))
    assert {one.top1 for one in read_baselines(tmp_path)} == {80.0}
    baselines(tmp_path, answers).train(nothing_to_compare)
    found = read_baselines(tmp_path)
    assert {(one.lr, one.top1) for one in found} == {(2 * PROXY.lr, 90.0)}
    assert sorted(len(one.rates) for one in found) == [2, 2, 2, 4]
