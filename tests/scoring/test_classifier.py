"""A network must answer images with finite scores, and be that of the files beside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from vitnas.errors import ConfigError, DataError, VitnasError
from vitnas.exported.held_out import HeldOut
from vitnas.scoring.classifier import Classifier, count_classes, facts_beside

IMAGES = torch.zeros(2, 1, 4, 4)


def asked(ask: Any) -> Classifier:
    return Classifier("net", "PyTorch", ask, 1, (4, 4), 3, torch.device("cpu"))


def test_scores_are_finite_numbers() -> None:
    assert asked(lambda images: torch.zeros(2, 3)).scores(IMAGES).shape == (2, 3)
    with pytest.raises(VitnasError, match="net: gives scores that are not finite numbers"):
        asked(lambda images: torch.full((2, 3), torch.nan)).scores(IMAGES)


def test_classes_without_names_are_numbers() -> None:
    assert asked(None).labels == ("0", "1", "2")


def test_scores_are_counted() -> None:
    assert count_classes("net", lambda images: images.flatten(1), IMAGES) == 16


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (lambda images: images, r"net: answers 2 images with \[2, 1, 4, 4\] and not scores"),
        (lambda images: torch.zeros(1, 3), r"net: answers 2 images with \[1, 3\]"),
        (lambda images: images @ torch.zeros(9, 9), "net: cannot take images of 1 x 4 x 4: "),
        (lambda images: None, r"net: answers 2 images with \[\]"),
    ],
)
def test_what_is_no_classifier_is_refused(answer: Any, rule: str) -> None:
    with pytest.raises(ConfigError, match=rule):
        count_classes("net", answer, IMAGES)


@pytest.mark.slow
def test_the_files_beside_it_are_its_own(digits_net: Path, tmp_path: Path) -> None:
    preprocessing, names, held = facts_beside(digits_net, "net", (1, 8, 8), 10)
    assert preprocessing is not None
    assert (preprocessing.fit, names) == ("stretch", ())
    assert held == HeldOut(val_fraction=0.2, split_seed=0)
    for shape, classes in (((1, 8, 9), 10), ((1, 8, 8), 9)):
        with pytest.raises(ConfigError, match=r"1 x 8 x 8 images and 10 classes in .*config\.yaml"):
            facts_beside(digits_net, "net", shape, classes)
    folder = shutil.copytree(digits_net, tmp_path / "net")
    (folder / "labels.txt").write_text("a\nb\n")
    with pytest.raises(DataError, match=r"labels\.txt: 2 names for 10 classes"):
        facts_beside(folder, "net", (1, 8, 8), 10)


def test_a_folder_with_nothing_says_nothing(tmp_path: Path) -> None:
    assert facts_beside(tmp_path, "net", (1, 8, 8), 10) == (None, (), None)
