"""The trained networks that a check is about: one folder's, or those of a run's front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vitnas.config.baseline import Baseline
from vitnas.config.data import DataConfig
from vitnas.config.design import Design
from vitnas.config.files import validate
from vitnas.config.model import ModelConfig
from vitnas.config.space import SpaceConfig
from vitnas.engine.store.study import FILE_NAME, read_run
from vitnas.errors import DataError, RunError, VitnasError
from vitnas.exported.check import NUMBER, TOLERANCES
from vitnas.exported.choose import choose_trial
from vitnas.exported.design import line_of, read_design, size_of_design
from vitnas.exported.held_out import held_out_of
from vitnas.exported.preprocessing import trained_on
from vitnas.exported.programs import write_programs
from vitnas.records import TrialRecord
from vitnas.report.networks import network_lines
from vitnas.run import Run
from vitnas.scoring.classifier import Classifier
from vitnas.scoring.load import load_classifier
from vitnas.scoring.programs import open_program
from vitnas.trained import kept_subject

ONNX_FILE = "model.onnx"


@dataclass(frozen=True)
class TrainedNetwork:
    """A network that is checked.

    Attributes:
        name: its folder, or `trial 7`.
        trial: its number in a run, or None.
        line: the network in one line.
        classifier: in PyTorch on the CPU.
        design: what it is built from.
        folder: where its model.onnx may be, or None.
    """

    name: str
    trial: int | None
    line: str
    classifier: Classifier
    design: Design
    folder: Path | None = None

    @property
    def network(self) -> Any:
        """In eval mode on the CPU."""
        return self.classifier.ask

    @property
    def places(self) -> ModelConfig | dict[str, str]:
        """What `operators_of` needs to know where an operator is from."""
        if isinstance(self.design, ModelConfig):
            return self.design
        if isinstance(self.design, Baseline):
            return {}
        from vitnas.nn.graft.families import mixers_of

        return mixers_of(self.network)

    @property
    def flops(self) -> int:
        return size_of_design(self.design).flops

    @property
    def num_params(self) -> int:
        return size_of_design(self.design).num_params

    def onnx_file(self, place: Path) -> Path:
        """Its model.onnx: the folder's, or one that is written to `place`.

        Raises:
            DataError: it cannot be written.
        """
        there = None if self.folder is None else self.folder / ONNX_FILE
        if there is not None and there.exists():
            return there
        left_out = write_programs(place, self.network, ("onnx",))
        if left_out:
            raise DataError(f"{self.name}: has no {ONNX_FILE}: {left_out[ONNX_FILE]}")
        return place / ONNX_FILE

    def check_file(self) -> None:
        """Make sure that the folder's model.onnx, if there is one, gives the network's scores.

        Raises:
            DataError: it is damaged or another network's.
            ConfigError: it takes other images than the network.
        """
        file = None if self.folder is None else self.folder / ONNX_FILE
        if file is None or not file.exists():
            return
        program = open_program(file, "cpu")
        shape = (NUMBER, self.classifier.in_chans, *self.classifier.image_hw)
        images = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        expected = self.classifier.scores(images)
        found = program.scores(images)
        scale = float(expected.abs().max().clamp_min(1.0))
        difference = float((found - expected).abs().max()) / scale
        if not difference <= TOLERANCES[ONNX_FILE]:
            rule = f"gives other scores than {self.name} with its weights (by {difference:.1e})"
            raise DataError(f"{file}: {rule}; delete it, or export the network again")


def is_run(path: Path) -> bool:
    """Whether a folder is a run's."""
    return (path / FILE_NAME).is_file()


def of_folder(path: Path) -> list[TrainedNetwork]:
    """The network of an exported folder.

    Raises:
        VitnasError: there is none, or its weights or its model.onnx are missing, damaged or
            another's.
    """
    if not path.is_dir():
        raise VitnasError(f"{path}: is not a folder; give an exported folder or a run")
    classifier = load_classifier(path, "cpu")
    design = read_design(path)
    member = TrainedNetwork(str(path), None, line_of(design), classifier, design, path)
    member.check_file()
    return [member]


def of_run(path: Path, trials: Sequence[int] = ()) -> tuple[list[TrainedNetwork], DataConfig]:
    """The networks of a run's front with the weights that it kept, and the run's data.

    Args:
        path: the run.
        trials: numbers of complete trials instead of the front.

    Raises:
        RunError: the front is empty, or weights are not kept; names the command that trains them.
        VitnasError: a trial is not complete, or there is none of its number.
    """
    run = read_run(path)
    front = [choose_trial(run, trial=number) for number in dict.fromkeys(trials)]
    front = front or list(run.front)
    if not front:
        raise RunError(f"{path}: no trial is complete yet, so there is no front to check")
    lines = network_lines(front)
    data = validate(SpaceConfig, dict(run.space)).data
    members = [
        TrainedNetwork(
            f"trial {trial.number}", trial.number, line, _classifier(run, trial), trial.network
        )
        for trial, line in zip(front, lines, strict=True)
    ]
    return members, data


def _classifier(run: Run, trial: TrialRecord) -> Classifier:
    """A trial's network, prepared as the run's trainings were."""
    network = kept_subject(run, trial).network
    data, config = run.environment.data, trial.network
    known = data.normalisation(config.image_hw)
    how = None if known is None else trained_on(data.name or "", known.mean, known.std)
    return Classifier(
        f"trial {trial.number}",
        "PyTorch",
        network,
        config.in_chans,
        config.image_hw,
        config.num_classes,
        torch.device("cpu"),
        how,
        tuple(data.classes or ()),
        held_out_of(run.space.get("data") or {}),
    )
