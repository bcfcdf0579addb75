"""A network as a folder: config.yaml, model.safetensors, README.md."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vitnas.config.files import dump_yaml, validate, write_bytes, write_text
from vitnas.config.model import ModelConfig, load_config
from vitnas.errors import RunError
from vitnas.export.card import Scores, model_card

if TYPE_CHECKING:
    from torch import nn

    from vitnas.records import Run, TrialRecord

CONFIG_FILE = "config.yaml"
GRAFT_FILE = "graft.yaml"
WEIGHTS_FILE = "model.safetensors"


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
) -> Path:
    """Write `trial`'s network with `weights` as a folder that `load` reads.

    All or nothing: the weights are loaded once as proof, the folder is written beside and renamed.

    Args:
        run: where the trial is from.
        trial: the network.
        weights: its weights in safetensors' format.
        to: the folder; must not exist, or be empty.
        epochs, top1, test_top1: of the training that gave the weights; top-1 in percent. Left
            out, the weights are those of the search's own proxy training.
        command: what made the folder, for the model card; by default this process's.

    Returns:
        The folder.

    Raises:
        RunError: the folder is not empty or cannot be written.
        ConfigError, DataError: the weights are not those of the trial's network.
    """
    from vitnas.nn.model import build_model
    from vitnas.training.weights import load_weights

    folder = Path(to)
    check_free(folder)
    config = validate(ModelConfig, dict(trial.config))
    scores = Scores(trial.epochs, trial.curve[-1], trial.test_top1, anew=False)
    if epochs is not None:
        scores = Scores(epochs, top1, test_top1, anew=True)
    load_weights(build_model(config), weights)
    with beside(folder) as draft:
        write_text(draft / CONFIG_FILE, dump_yaml(config.to_tree()))
        write_bytes(draft / WEIGHTS_FILE, weights)
        write_text(draft / "README.md", model_card(run, trial, config, scores, folder, command))
    return folder


def load(folder: str | Path) -> nn.Module:
    """The network of an exported folder with its weights, in eval mode on the CPU.

    A folder with a graft.yaml is a grafted network of timm's (`vitnas.export.grafts`).

    Raises:
        ConfigError: config.yaml is missing or not a model file, or the weights are of another
            network: names the first tensor that does not fit.
        DataError: model.safetensors is missing, unreadable or damaged.
    """
    from vitnas.nn.model import build_model
    from vitnas.training.weights import load_weights

    folder = Path(folder)
    if (folder / GRAFT_FILE).is_file():
        from vitnas.export.grafts import load_graft

        return load_graft(folder)
    model = build_model(load_config(folder / CONFIG_FILE))
    load_weights(model, folder / WEIGHTS_FILE)
    return model.eval()


@contextmanager
def beside(folder: Path) -> Iterator[Path]:
    """A new folder next to `folder` that takes its place when the block ends well.

    Raises:
        RunError: `folder` is a file or not empty, or its place cannot be written to.
    """
    check_free(folder)
    draft: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
        yield draft
        draft.chmod(0o777 & ~_umask())  # mkdtemp's is for its owner only
        if folder.is_dir():
            folder.rmdir()  # empty, as checked; not every system renames over a folder
        draft.rename(folder)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise RunError(f"{folder}: cannot be written: {reason}") from None
    finally:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)


def _umask() -> int:
    """The process's file mode mask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_free(folder: Path) -> None:
    """Raise `RunError` unless `folder` does not exist or is empty."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()):
                raise RunError(f"{folder}: is not empty; give a new or an empty folder")
        elif folder.exists() or folder.is_symlink():
            raise RunError(f"{folder}: is a file; give a new or an empty folder")
    except OSError as error:
        raise RunError(f"{folder}: cannot be used: {(error.strerror or '').lower()}") from None
