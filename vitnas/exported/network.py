"""A network of a run as a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.config.files import write_text
from vitnas.exported.card import Scores, model_card, name_of, title_of
from vitnas.exported.folder import CARD_FILE, beside, check_free
from vitnas.exported.held_out import held_out_of
from vitnas.exported.preprocessing import Preprocessing, trained_on
from vitnas.exported.write import Content, write_network

if TYPE_CHECKING:
    from torch import Tensor

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
    preprocessing: Preprocessing | None = None,
    images: Tensor | None = None,
    formats: tuple[str, ...] = (),
    notice: Callable[[str], None] = lambda line: None,
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
        preprocessing: how an image becomes the network's input; by default by what the run says.
        images: normalised images (n, C, H, W) to check the files on; None = random ones.
        formats: which of `vitnas.exported.write.FORMATS` are written, too.
        notice: called with a line on the files of `formats`, and with one on each that is left out.

    Returns:
        The folder.

    Raises:
        RunError: the folder is not empty or cannot be written, or a file that should run without
            vitnas gives other scores.
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
    data = run.environment.data
    known = data.normalisation(config.image_hw)
    if preprocessing is None and known is not None:
        preprocessing = trained_on(data.name or "", known.mean, known.std)
    content = Content(
        config.model_copy(update={"name": name_of(run, trial)}),
        weights,
        title_of(run, trial, scores),
        data.classes or (),
        preprocessing,
        images,
        formats,
        held_out_of(run.space.get("data") or {}),
    )
    with beside(folder) as draft:
        written = write_network(draft, folder, content)
        card = model_card(run, trial, config, scores, folder, command, written)
        write_text(draft / CARD_FILE, card)
    for line in written.lines():
        notice(line)
    return folder
