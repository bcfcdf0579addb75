"""After long trainings: who stands against whom, what is said of it, and what is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.report.runs import SPACE, reference, run_of, tree, trial
from tests.test_longer import of_baseline, training
from vitnas.longer import PROXY, LongTraining, add
from vitnas.noise import binomial_error
from vitnas.records import BaselineRecord, Outcome
from vitnas.report.long_against import (
    against_text,
    best_families,
    long_against,
    next_baseline,
    to_compare,
    to_fine_tune,
)
from vitnas.report.page import render_pages
from vitnas.report.verdict import verdict
from vitnas.run import Run


def baseline(family: str, flops: int, top1: float) -> BaselineRecord:
    facts: dict[str, Any] = {"outcome": Outcome.COMPLETE, "flops": flops, "curve": (top1,)}
    return BaselineRecord(network=reference(family), **facts)


TRIALS = (trial(0, 70.0, 1_000_000), trial(1, 75.0, 4_000_000))
THEIRS = (
    baseline("vgg", 1_200_000, 71.0),
    baseline("resnet", 900_000, 68.0),
    baseline("vit", 1_600_000, 90.0),  # beyond a factor of 1.5
)


def run_with(folder: Path, *trainings: LongTraining, **more: Any) -> Run:
    for one in trainings:
        add(folder, one)
    return run_of(folder, *TRIALS, baselines=THEIRS, **more)


def ours(number: int, test: float | None, **more: Any) -> LongTraining:
    return training(number, key=TRIALS[number].key, test_top1=test, **more)


def theirs(family: str, test: float | None, **more: Any) -> LongTraining:
    one = reference(family)
    flops = next(known.flops for known in THEIRS if known.family == family)
    return of_baseline(one.name, key=one.key, flops=flops, test_top1=test, **more)


def test_ours_stands_against_the_best_baseline_of_like_flops(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        ours(0, 93.0),
        ours(1, 99.0),
        theirs("vgg", 90.0, top1=95.0),
        theirs("resnet", 92.0, top1=91.0),
        theirs("vit", 99.0, top1=99.0),
    )
    (found,) = long_against(run)
    assert (found.ours.called, found.theirs.called) == ("trial 0", "baseline vgg-8")
    assert [side.flops for side in found.sides] == [1_000_000, 1_200_000]
    assert (found.num_images, found.on_test) == (10_000, True)
    assert found.points == pytest.approx(3.0)
    half = 1.959964 * (binomial_error(93, 10_000) ** 2 + binomial_error(90, 10_000) ** 2) ** 0.5
    assert found.interval == pytest.approx((3.0 - half, 3.0 + half))
    assert against_text(run) == (
        "After long trainings of 30 epochs by `small`, trial 0 (1.00 M FLOPs) is 3.00 points above "
        "baseline vgg-8 (1.20 M FLOPs): 95 % interval +2.23 to +3.77, of the images alone, on "
        "10,000 test images. Seeds scatter further, most where networks are small: another "
        "`--seed` for each measures it."
    )
    assert verdict(run).endswith(against_text(run))
    assert against_text(run) in render_pages(run, b"").markdown


def test_seeds_widen_the_interval(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        *(ours(0, top1, seed=seed) for seed, top1 in enumerate((91.0, 93.0))),
        *(theirs("vgg", top1, seed=seed) for seed, top1 in enumerate((90.0, 91.0))),
    )
    (found,) = long_against(run)
    assert found.points == pytest.approx(1.5)
    assert found.has_seeds
    assert "cannot be told apart: +1.50 points" in against_text(run)
    assert "of images and seeds" in against_text(run)
    assert "Seeds scatter further" not in against_text(run)


def test_of_several_learning_rates_the_best_of_each_side_counts(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        ours(0, 99.0, top1=91.0),
        ours(0, 93.0, top1=94.0, lr=0.016),
        theirs("vgg", 98.0, top1=90.0),
        theirs("vgg", 90.0, top1=95.0, lr=0.016),
    )
    (found,) = long_against(run)
    assert [found.ours.lr, found.theirs.lr] == [0.016, 0.016]
    assert found.points == pytest.approx(3.0)
    assert "trial 0 at lr 0.016 (1.00 M FLOPs) is 3.00 points above" in against_text(run)


def test_the_command_that_measures_seeds_is_named(tmp_path: Path) -> None:
    by = {"recipe": PROXY, "epochs": 40}
    run = run_with(tmp_path, ours(0, 93.0, **by), theirs("vgg", 90.0, **by))
    command = f"`vitnas confirm {tmp_path} --epochs 40 --seeds 2`"
    assert against_text(run).endswith(f"most where networks are small: {command} measures it.")


def test_several_networks_are_compared_on_average(tmp_path: Path) -> None:
    large = of_baseline(
        "vgg-99", key=reference("vgg").key[::-1], flops=TRIALS[1].flops, test_top1=95.0
    )
    run = run_with(tmp_path, ours(0, 93.0), ours(1, 99.0), theirs("vgg", 90.0), large)
    assert len(long_against(run)) == 2
    errors = [binomial_error(top1, 10_000) / 2 for top1 in (93, 99, 90, 95)]
    half = 1.959964 * sum(error**2 for error in errors) ** 0.5
    assert against_text(run) == (
        "After long trainings of 30 epochs by `small`, 2 networks are 3.50 points above the best "
        f"baselines of like FLOPs: 95 % interval +{3.5 - half:.2f} to +{3.5 + half:.2f}, of the "
        "images alone, on 10,000 test images. One by one: trial 0 (1.00 M FLOPs) +3.00 (+2.23 to "
        "+3.77) against baseline vgg-8 (1.20 M FLOPs); trial 1 (4.00 M FLOPs) +4.00 (+3.53 to "
        "+4.47) against baseline vgg-99 (4.00 M FLOPs)."
        " Seeds scatter further, most where networks are small: another `--seed` for each "
        "measures it."
    )
    assert verdict(run).split("\n\n")[1] == against_text(run)
    assert f'<p class="lead verdict">{against_text(run)}</p>' in (
        re.sub("</?code>", "`", render_pages(run, b"").html)
    )


def test_of_many_pairs_the_ends_and_the_middle_are_told(tmp_path: Path) -> None:
    """They had been the first three by number, which say nothing of the large networks."""
    networks = [tree("mhsa", depth=n + 1) for n in range(5)]
    trials = [
        trial(n, 70.0 + n, 2 ** (4 - n) * 10**6, config=one) for n, one in enumerate(networks)
    ]
    for one in trials:
        add(tmp_path, training(one.number, key=one.key, test_top1=93.0))
        facts: dict[str, Any] = {"key": f"b{one.number:011}", "flops": one.flops}
        add(tmp_path, of_baseline(f"vgg-{one.number + 1}", test_top1=90.0, **facts))
    text = against_text(run_of(tmp_path, *trials))
    assert ", 5 networks are 3.00 points above" in text
    assert text.count(" against baseline ") == 3
    told = [text.index(f"trial {number} (") for number in (4, 2, 0)]
    assert told == sorted(told)
    assert "The cheapest, one in the middle and the largest: trial 4 (1.00 M FLOPs)" in text
    assert "; 2 more are in the table. Seeds scatter further" in text


def test_without_a_test_score_the_scoring_images_are_compared(tmp_path: Path) -> None:
    run = run_with(tmp_path, ours(0, None, top1=80.0), theirs("vgg", 99.0, top1=85.0))
    assert "5.00 points below baseline vgg-8" in against_text(run)
    assert "on 5,000 scoring images, which chose both." in against_text(run)
    unknown = replace(run, environment=run_of(tmp_path, environment={}).environment)
    assert long_against(unknown) == ()


def test_with_folds_a_long_training_is_scored_on_the_images_of_the_first(tmp_path: Path) -> None:
    """`num_val_images` counts those of all folds, on which a trial is scored."""
    both = ours(0, None, top1=80.0), theirs("vgg", None, top1=85.0)
    run = run_with(tmp_path, *both, space={**SPACE, "data": {"name": "cifar10", "folds": 5}})
    (found,) = long_against(run)
    half = 1.959964 * (binomial_error(80, 1000) ** 2 + binomial_error(85, 1000) ** 2) ** 0.5
    assert found.interval == pytest.approx((-5.0 - half, -5.0 + half))
    assert "on 1,000 scoring images" in against_text(run)
    tested = (one.model_copy(update={"test_top1": 90.0}) for one in both)
    run = run_with(tmp_path, *tested, space=run.space)
    assert long_against(run)[0].num_images == 10_000


def test_other_settings_are_not_compared(tmp_path: Path) -> None:
    run = run_with(tmp_path, ours(0, 93.0), theirs("vgg", 90.0, setting="f" * 12))
    assert long_against(run) == ()


def published(name: str, flops: int, test: float, **more: Any) -> LongTraining:
    """A network of timm that starts from trained weights, by a recipe of its own."""
    fields = {"setting": "f" * 12, "weights": f"timm:{name}.in1k", "epochs": 5, "recipe": "tuned"}
    return of_baseline(f"timm:{name}", key=name, flops=flops, test_top1=test, **fields | more)


def test_a_network_that_starts_from_trained_weights_is_a_rival_of_its_own(tmp_path: Path) -> None:
    run = run_with(
        tmp_path,
        ours(0, 93.0),
        theirs("vgg", 90.0, top1=95.0),
        published("small", 200_000, 96.0, top1=96.0),
        published("large", 1_600_000, 99.0, top1=99.0),  # beyond a factor of 1.5
    )
    fresh, tuned = long_against(run)
    assert fresh.theirs.called == "baseline vgg-8"
    assert tuned.theirs.called == "baseline timm:small"
    assert [side.flops for side in tuned.sides] == [1_000_000, 200_000]
    assert against_text(run).endswith(
        "After long trainings of 30 epochs by `small`, trial 0 (1.00 M FLOPs) is 3.00 points below "
        "baseline timm:small from the weights timm:small.in1k (200 k FLOPs), trained further for 5 "
        "epochs by `tuned`: 95 % interval \N{MINUS SIGN}3.63 to \N{MINUS SIGN}2.37, of the "
        "images alone, on 10,000 test images. Seeds scatter further, most where networks are "
        "small: another `--seed` for each measures it."
    )
    assert "| baseline timm:small from the weights timm:small.in1k |" in (
        render_pages(run, b"").markdown
    )


def test_trained_weights_do_not_replace_a_baseline_that_starts_from_nothing(
    tmp_path: Path,
) -> None:
    assert "--baseline timm:NAME" in to_fine_tune(run_with(tmp_path, ours(0, 93.0)), 0)
    run = run_with(tmp_path, published("small", 200_000, 96.0))
    assert to_fine_tune(run, 0) == ""
    assert "--baseline vgg" in next_baseline(run)
    assert to_compare(run, 0) == f"vitnas confirm {tmp_path} --trial 0"


def test_the_missing_baseline_is_named_with_its_command(tmp_path: Path) -> None:
    run = run_with(tmp_path, ours(0, 93.0))
    train = f"vitnas train --for {tmp_path} --trial 0"  # vgg is the best one of like FLOPs
    command = f"{train} --baseline vgg --recipe small --epochs 30 --to DIR"
    assert next_baseline(run) == command
    pages = render_pages(run, b"")
    assert command in pages.html
    assert command in pages.markdown
    assert to_compare(run, 0) == f"vitnas confirm {tmp_path} --trial 0"
    there = run_with(tmp_path, theirs("vgg", 90.0))
    assert next_baseline(there) == ""
    assert to_compare(there, 0) == ""
    assert to_compare(there, 1).endswith(" --trial 1")


def test_the_best_family_is_that_at_the_flops(tmp_path: Path) -> None:
    """vgg has 60, 70 and 80 at 0.1, 1 and 10 M FLOPs. A member of like FLOPs stands for a network
    that is a little cheaper: MobileNetV3's blocks of 404 k had been no rival of one of 396 k."""
    theirs = [baseline("vgg", 10**5, 60.0), baseline("vgg", 10**7, 80.0)]
    theirs += [baseline("resnet", 10**5, 69.0), baseline("resnet", 10**7, 71.0)]
    run = replace(run_of(tmp_path, *TRIALS), baselines=tuple(theirs))
    found = [best_families(run, flops) for flops in (10, 10**5, 9 * 10**5, 2 * 10**6, 10**9)]
    both = ("vgg", "resnet")
    assert found == [("vgg",), both[::-1], both[::-1], both, both]
    assert [best_families(run, flops) for flops in (60_000, 70_000)] == [("vgg",), both[::-1]]
    assert best_families(replace(run, baselines=()), 10) == ("vgg",)
