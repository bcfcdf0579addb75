"""A network scored on labelled images: accuracy, calibration, confusion and speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from vitnas.config.data import DataConfig
from vitnas.cost.device import throughput
from vitnas.data.decode import skipped_text
from vitnas.data.foreign import describe
from vitnas.exported.preprocessing import Preprocessing
from vitnas.scoring.answers import Answers, answers_of, answers_to
from vitnas.scoring.classes import matched
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.data import Labelled, LabelledFiles, Part, of_data_set, of_folder
from vitnas.scoring.images import check_channels, normalised
from vitnas.scoring.load import load_classifier


@dataclass(frozen=True)
class ClassScore:
    """A class of the images.

    Attributes:
        name: of it.
        images: of it.
        correct: of these.
    """

    name: str
    images: int
    correct: int

    @property
    def top1(self) -> float | None:
        """In percent; None without images."""
        return 100.0 * self.correct / self.images if self.images else None


@dataclass(frozen=True)
class Suited:
    """Images that score a network.

    Attributes:
        labelled: the images.
        how: they become the network's input.
        places: the output of the network for each of their classes.
        notes: lines on how images and classes are taken.
    """

    labelled: Labelled
    how: Preprocessing
    places: tuple[int, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Evaluation:
    """A network's scores.

    Attributes:
        model, runtime: what was scored, and what ran it.
        images: which images, in words.
        answers: to each image; has `top1`, `top1_interval`, `top5`, `log_loss` and
            `calibration_error`.
        labels: names of the network's classes.
        classes: of the images, in the order of their numbers.
        speeds: images a second, by the size of a batch.
        device, threads: where it ran, and on how many threads of the CPU.
        notes: lines on how images and classes were taken.
    """

    model: str
    runtime: str
    images: str
    answers: Answers
    labels: tuple[str, ...]
    classes: tuple[ClassScore, ...]
    speeds: dict[int, float]
    device: str
    threads: int
    notes: tuple[str, ...] = field(default=())

    @property
    def top1(self) -> float:
        """In percent."""
        return self.answers.top1

    @property
    def confusions(self) -> list[tuple[str, str, int]]:
        """True class, predicted class, number of images; the most frequent mistakes first."""
        pairs = self.answers.pairs().items()
        return [(self.labels[t], self.labels[p], number) for (t, p), number in pairs if t != p]


def evaluate(
    model: str,
    data: DataConfig,
    part: Part = "test",
    *,
    weights: str | None = None,
    batch_sizes: Sequence[int] = (),
    device: str = "auto",
) -> Evaluation:
    """Score a network; see `vitnas.api.evaluate`.

    Raises:
        VitnasError: network and images do not fit together, or one of them cannot be read.
    """
    files = files_of(data, part)
    classifier = load_classifier(model, device, weights, _channels(data, files, weights))
    suited = suit(classifier, data, part, files)
    labelled, places = suited.labelled, suited.places
    answers = _answers(classifier, suited)
    return Evaluation(
        model=classifier.name,
        runtime=classifier.runtime,
        images=labelled.words,
        answers=answers,
        labels=_labels(classifier, labelled.classes, places),
        classes=_by_class(answers, labelled.classes, places),
        speeds={size: _speed(classifier, size) for size in batch_sizes},
        device=str(classifier.device),
        threads=torch.get_num_threads(),
        notes=(*suited.notes, *skipped_text(labelled.skipped)),
    )


def _channels(data: DataConfig, files: LabelledFiles | None, weights: str | None) -> int | None:
    """Channels of the images, for a network that is built for them; None: the network's own."""
    if files is not None:
        return None
    return data.facts.in_chans if weights is None or data.is_ours else describe(data)[1]


def files_of(data: DataConfig, part: Part) -> LabelledFiles | None:
    """The image files of a folder; None of another data set."""
    return of_folder(data, part) if data.name == "imagefolder" else None


def suit(
    classifier: Classifier, data: DataConfig, part: Part, files: LabelledFiles | None
) -> Suited:
    """The images that score a network, and how they become its input.

    Raises:
        VitnasError: network and images do not fit together, or images cannot be read.
    """
    labelled = files or of_data_set(data, part, classifier)
    if files is not None:
        check_channels(classifier.name, classifier.in_chans)
    what = data.name if files is None else str(data.folder)
    names, outputs = classifier.names, classifier.num_classes
    places, remark = matched(classifier.name, outputs, names, what, labelled.classes)
    how, said = _preparation(classifier, labelled)
    lines = (remark, _trained_on(classifier, data, labelled), said)
    return Suited(labelled, how, places, tuple(line for line in lines if line))


def _trained_on(classifier: Classifier, data: DataConfig, labelled: Labelled) -> str:
    """A remark where images that are held out now may have trained the network."""
    if classifier.held_out is None or not labelled.is_held_out:
        return ""
    of_all = len(labelled.classes) == classifier.num_classes
    return classifier.held_out.remark(data, of_all_classes=of_all)


def _preparation(classifier: Classifier, labelled: Labelled) -> tuple[Preprocessing, str]:
    """How images become the network's input, and a remark."""
    how = classifier.preprocessing
    if how is not None and not how.remark:
        return how, ""
    how = how or labelled.default(classifier.in_chans)
    values = f"mean {_numbers(how.mean)}, deviation {_numbers(how.std)}"
    source = labelled.source if classifier.preprocessing is None else "taken are usual values"
    return how, f"the network does not say how images are prepared: {source}, {values}"


def _answers(classifier: Classifier, suited: Suited) -> Answers:
    how, places = suited.how, torch.tensor(suited.places)
    found = [
        answers_to(classifier.scores(normalised(pixels, how)), places[labels])
        for pixels, labels in suited.labelled.batches(how, classifier.in_chans, classifier.image_hw)
    ]
    return answers_of(found)


def _labels(
    classifier: Classifier, classes: Sequence[str], places: Sequence[int]
) -> tuple[str, ...]:
    """What the network's classes are called, by the images where it does not say."""
    labels = list(classifier.labels)
    for name, place in zip(classes, places, strict=True):
        labels[place] = name
    return tuple(labels)


def _by_class(
    answers: Answers, classes: Sequence[str], places: Sequence[int]
) -> tuple[ClassScore, ...]:
    images = np.bincount(answers.labels, minlength=answers.outputs)
    correct = np.bincount(answers.labels[answers.correct], minlength=answers.outputs)
    return tuple(
        ClassScore(name, int(images[place]), int(correct[place]))
        for name, place in zip(classes, places, strict=True)
    )


def _speed(classifier: Classifier, size: int) -> float:
    images = torch.zeros(size, classifier.in_chans, *classifier.image_hw, device=classifier.device)
    with torch.inference_mode():
        return throughput(classifier.ask, images)


def _numbers(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)
