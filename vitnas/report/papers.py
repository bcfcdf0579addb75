"""The papers' models that a run has trained: by their networks, whoever proposed them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from vitnas.config.model import ModelConfig
from vitnas.errors import VitnasError
from vitnas.nn.zoo import printed, zoo_config, zoo_names
from vitnas.records import Outcome, TrialRecord
from vitnas.report.text import listed, percent_text
from vitnas.run import Run

_FREE = (
    *("img_size", "in_chans", "num_classes"),
    *("drop_rate", "pos_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate"),
)
"""What belongs to the data or to the training, and not to the architecture."""


class PaperModel(NamedTuple):
    """A paper's model and the trial that is its network.

    Attributes:
        name: in the zoo.
        source: paper and tables.
        trial: the trial; complete, or stopped early.
        resized: `224 px in the paper, 32 px here`; empty where both are equal.
    """

    name: str
    source: str
    trial: TrialRecord
    resized: str


def paper_models(run: Run) -> list[PaperModel]:
    """The papers' models among the trained networks of a run, by trial.

    Classes, channels, image size and drop rates are the run's, as where a search starts from them.
    """
    complete = {trial.number: trial for trial in run.complete}
    trained = (t for t in run.trials if t.outcome in (Outcome.COMPLETE, Outcome.STOPPED))
    found = (_model_of(complete.get(trial.number, trial)) for trial in trained)
    return [one for one in found if one is not None]


def _model_of(trial: TrialRecord) -> PaperModel | None:
    try:
        network = trial.network
    except VitnasError:  # nothing is known of it, or its mixer is another package's
        return None
    name = _names(tuple(getattr(network, field) for field in _FREE)).get(network.key)
    if name is None:
        return None
    here, there = network.image_hw, zoo_config(name).image_hw
    sizes = "" if here == there else f"{_size(there)} in the paper, {_size(here)} here"
    return PaperModel(name, printed()[name].source, trial, sizes)


@cache
def _names(free: tuple[Any, ...]) -> Mapping[str, str]:
    """The zoo's names by key, with these values of `_FREE`; of equal networks the name whose paper
    has this image size, else the first."""
    changes, found = dict(zip(_FREE, free, strict=True)), dict[str, str]()
    for name in zoo_names():
        try:
            network = zoo_config(name, **changes)
        except VitnasError:  # its groups or its stem do not fit the size
            continue
        known = found.setdefault(network.key, name)
        if not _is_own_size(known, network) and _is_own_size(name, network):
            found[network.key] = name
    return found


def _is_own_size(name: str, network: ModelConfig) -> bool:
    return zoo_config(name).image_hw == network.image_hw


def _size(image_hw: tuple[int, int]) -> str:
    height, width = image_hw
    return f"{height} px" if height == width else f"{height}x{width} px"


def papers_text(run: Run) -> str:
    """Which of the papers' models were trained in the run and where they stand; empty if none."""
    models = paper_models(run)
    if not models:
        return ""
    front = {trial.number for trial in run.front}
    told = [_told(one, front) for one in models]
    resized = sorted({one.resized for one in models if one.resized})
    sizes = f" Image sizes differ: {listed(resized)}." if resized else ""
    return (
        f"Of the papers' models this run trained {listed(told)}. Their top-1 is from this run's "
        f"short training on its own images; no paper prints it.{sizes}"
    )


def _told(one: PaperModel, front: set[int]) -> str:
    trial = one.trial
    where = "on the front" if trial.number in front else "not on the front"
    if trial.outcome is Outcome.STOPPED:
        where = "stopped early"
    return f"`{one.name}` (trial {trial.number}, {percent_text(trial.estimate)} %, {where})"
