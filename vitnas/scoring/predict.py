"""The most likely classes of image files, as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from vitnas.data.decode import BrokenImage
from vitnas.exported.preprocessing import Preprocessing, unknown
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.images import Decoded, check_channels, dealt, decoded, normalised


@dataclass(frozen=True)
class Prediction:
    """What a network says of an image file.

    Attributes:
        file: the image.
        classes: the most likely classes with their probabilities, 0 to 1, the likeliest first.
        problem: why the file cannot be read, and then there are no classes; None where it was.
    """

    file: Path
    classes: tuple[tuple[str, float], ...] = ()
    problem: str | None = None


def assumed(classifier: Classifier) -> str:
    """How images are prepared where the network does not say; empty where it does."""
    how = classifier.preprocessing or unknown(classifier.in_chans)
    if not how.remark:
        return ""
    return (
        f"{classifier.name}: does not say how images are prepared; they are {how.words}, with "
        f"mean {', '.join(map(str, how.mean))} and deviation {', '.join(map(str, how.std))}"
    )


def predict(classifier: Classifier, paths: Iterable[Path], top: int = 1) -> Iterator[Prediction]:
    """The `top` most likely classes of each image file, in the order of `paths`.

    Files are decoded on all cores while the network works; a bounded number is held.

    Raises:
        ConfigError: the network takes no image files.
        VitnasError: a score is not a finite number.
    """
    channels, hw = classifier.in_chans, classifier.image_hw
    check_channels(classifier.name, channels)
    how = classifier.preprocessing or unknown(channels)
    for batch in dealt(decoded(paths, how, channels, hw)):
        yield from _answered(classifier, how, batch, min(top, classifier.num_classes))


def _answered(
    classifier: Classifier, how: Preprocessing, batch: Sequence[Decoded], top: int
) -> Iterator[Prediction]:
    pixels = [found for _, found in batch if not isinstance(found, BrokenImage)]
    shares: Iterator[tuple[list[int], list[float]]] = iter(())
    if pixels:
        scores = classifier.scores(normalised(torch.stack(pixels), how)).cpu()
        best = scores.softmax(dim=1).topk(top)
        shares = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    labels = classifier.labels
    for path, found in batch:
        if isinstance(found, BrokenImage):
            yield Prediction(path, problem=found.reason)
            continue
        numbers, values = next(shares)
        named = zip((labels[number] for number in numbers), values, strict=True)
        yield Prediction(path, tuple(named))
