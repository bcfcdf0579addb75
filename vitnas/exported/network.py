"""A network of a run as a folder: config.yaml, model.safetensors, README.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.config.files import dump_yaml, write_bytes, write_text
from vitnas.exported.card import Scores, model_card
from vitnas.exported.folder import (
    CARD_FILE,
    CONFIG_FILE,
    WEIGHTS_FILE,
    beside,
    check_free,
    write_classes,
)

if TYPE_CHECKING:
    from vitnas.records import TrialRecord
    from vitnas.run import Run


def export_network(
    run: Run,
    trial: TrialRecord,
    weights: bytes,
    to: str | Path,
    *,
    epochs: int | None = None,
    top1: float | None = None,
    test_top1: float | None = None,
    command: str | None = None,
    file: Path | None = None,
) -> Path:
    """Write `trial`'s network with `weights` as a folder that `load` reads.

    The weights are loaded once as a check. The folder is written as a whole; after an error there
    is none.

    Args:
        run: the run of the trial.
        trial: the trial of the network.
        weights: its weights in safetensors' format.
        to: the folder. It must not exist, or be empty.
        epochs, top1, test_top1: epochs and top-1 in percent of the training that gave the weights.
            Without them, the weights are those of the search's proxy training.
        command: the command that made the folder, for the model card; by default this process's.
        file: the file of the weights, for errors.

    Returns:
        The folder.

    Raises:
        RunError: the folder is not empty or cannot be written.
        ConfigError, DataError: the weights do not belong to the trial's network.
    """
    from vitnas.nn.weights import network_with

    folder = Path(to)
    check_free(folder)
    config = trial.network
    scores = Scores(trial.epochs, trial.curve[-1], trial.test_top1, anew=False)
    if epochs is not None:
        scores = Scores(epochs, top1, test_top1, anew=True)
    network_with(config, weights, file)
    with beside(folder) as draft:
        write_text(draft / CONFIG_FILE, dump_yaml(config.to_tree()))
        write_bytes(draft / WEIGHTS_FILE, weights)
        write_classes(draft, run.environment.data.classes or ())
        write_text(draft / CARD_FILE, model_card(run, trial, config, scores, folder, command))
    return folder
