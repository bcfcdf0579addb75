"""Check where networks will run: latency, int8 and fp16, and what delegates take."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np
import torch

from vitnas.config.data import DataConfig
from vitnas.cores import cores
from vitnas.data.decode import skipped_text
from vitnas.deploy.blame import Blame, percent, verdict
from vitnas.deploy.delegates import aten_operators, lint
from vitnas.deploy.graph import counted, operators_of
from vitnas.deploy.half import computes_in_half, run_half, write_half
from vitnas.deploy.images import Pictures, pictures_for
from vitnas.deploy.result import POINT, DeployCheck, Form, NetworkCheck, Remedy, Timing
from vitnas.deploy.subjects import TrainedNetwork, is_run, of_folder, of_run
from vitnas.deploy.timing import ROUNDS, interleaved
from vitnas.environment import session_facts
from vitnas.errors import ConfigError, VitnasError
from vitnas.exported.programs import without_onnx
from vitnas.exported.quantized import Quantizer
from vitnas.exported.runtime import run_with
from vitnas.scoring.answers import Answers
from vitnas.scoring.data import Part

BATCHES = (1, 32)
_Marks = dict[str, list["np.typing.NDArray[np.bool_]"]]


@dataclass(frozen=True)
class _Files:
    """The forms of one network, in a folder of their own."""

    onnx: Path
    int8: Path
    fp16: Path


def deploy_check(
    subject: str | Path,
    data: DataConfig | None = None,
    part: Part = "test",
    *,
    trials: Sequence[int] = (),
    rounds: int = ROUNDS,
    notice: Callable[[str], None] = lambda line: None,
) -> DeployCheck:
    """Check a folder's network, or all networks of a run's front; see `vitnas.api.deploy_check`.

    Raises:
        VitnasError: onnxruntime is missing, or network, weights or images cannot be used.
    """
    if missing := without_onnx():
        raise VitnasError(f"deploy-check: {missing}")
    if not str(subject):  # as a path, it is the current folder
        raise VitnasError("DIR|RUN: is empty: an exported folder or a run is wanted")
    path, load = Path(subject), round(os.getloadavg()[0], 1)
    if is_run(path):
        members, its_data = of_run(path, trials)
        data = data or its_data
    else:
        if trials:
            raise VitnasError(f"{path}: --trial chooses networks of a run, and this is none")
        members = of_folder(path)
    if data is None:
        rule = "is required of a folder: the data set or folder that its images are from"
        raise ConfigError(rule, address="--data")
    asked = {one.classifier.image_hw: one.classifier for one in reversed(members)}
    pictures = {size: pictures_for(one, data, part) for size, one in asked.items()}
    first = pictures[members[0].classifier.image_hw]
    networks, changed = [], _Marks()
    with _own_torch():
        for member in members:
            notice(f"{member.name}: exporting, scoring and timing ...")
            with tempfile.TemporaryDirectory(prefix="vitnas.") as place:
                shown = pictures[member.classifier.image_hw]
                networks.append(_checked(member, shown, Path(place), rounds, changed))
    suited = first.suited
    more = {"onnxruntime": metadata.version("onnxruntime"), "threads": cores(), "load": load}
    return DeployCheck(
        subject=str(subject),
        images=suited.labelled.words,
        num_images=networks[0][1],
        calibration=len(first.calibration),
        training=len(first.training),
        networks=tuple(one for one, _ in networks),
        verdict=verdict(changed),
        notes=(*suited.notes, *skipped_text(suited.labelled.skipped)),
        facts=session_facts(**more),
    )


@contextmanager
def _own_torch() -> Iterator[None]:
    """Inside, torch has as many threads as a timing gives it; afterwards as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _checked(
    member: TrainedNetwork, pictures: Pictures, place: Path, rounds: int, changed: _Marks
) -> tuple[NetworkCheck, int]:
    """All of one network, and how many images scored it; `changed` gets what its mixers lose."""
    import onnx

    threads = cores()
    torch.set_num_threads(threads)
    model = member.onnx_file(place)
    operators = operators_of(onnx.load(model), member.places)
    quantizer = Quantizer(model, place, pictures.calibration)
    files = _Files(model, quantizer.write(place / "int8.onnx"), place / "fp16.onnx")
    write_half(model, files.fp16)
    paths = {"float": files.onnx, "int8": files.int8, "fp16": files.fp16}
    runs = [_run(name, path, threads) for name, path in paths.items()]
    answers = dict(zip(paths, pictures.answers(runs), strict=True))
    exact = answers["float"]
    forms = {name: _form(answers[name], exact, paths[name]) for name in paths}
    blame = Blame(quantizer, operators, pictures.training, threads)
    marks = blame.of_mixers()
    for mixer, found in marks.items():
        changed.setdefault(mixer, []).append(found)
    remedy = None
    if forms["int8"].lost > POINT:
        remedy = _remedy(blame, pictures, exact, place / "remedy.onnx", threads)
    shape = pictures.shape
    refused, numbers = lint(aten_operators(member.network, shape), counted(operators))
    done = NetworkCheck(
        name=member.name,
        trial=member.trial,
        line=member.line,
        flops=member.flops,
        num_params=member.num_params,
        forms=forms,
        timings=tuple(_timings(member, files, place, pictures, rounds)),
        changed={mixer: percent(found) for mixer, found in marks.items()},
        refused=refused,
        operators=numbers,
        remedy=remedy,
    )
    return done, len(exact)


def _run(form: str, path: Path, threads: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return run_half(path, threads) if form == "fp16" else run_with(path, threads)


def _form(answers: Answers, exact: Answers, path: Path) -> Form:
    """How a form compares with the float network, image by image; another form's error is at least
    that of one image that changes: that none did says little of others."""
    lost = exact.correct.astype(float) - answers.correct.astype(float)
    error = float(lost.std(ddof=1)) / len(lost) ** 0.5 if len(lost) > 1 else 0.0
    if answers is not exact:
        error = max(error, 1 / len(lost))
    return Form(
        top1=answers.top1,
        bytes=path.stat().st_size,
        lost=exact.top1 - answers.top1,
        error=100 * error,
        changed=percent(answers.predicted != exact.predicted),
    )


def _remedy(blame: Blame, pictures: Pictures, exact: Answers, path: Path, threads: int) -> Remedy:
    """Leave in float what int8 costs most, and score that."""
    parts, gains = blame.remedy()
    names = blame.names_of(parts)
    blame.quantizer.write(path, without=names)
    (answers,) = pictures.answers([run_with(path, threads)])
    return Remedy(parts, len(names), _form(answers, exact, path), gains)


def _timings(
    member: TrainedNetwork, files: _Files, place: Path, pictures: Pictures, rounds: int
) -> Iterator[Timing]:
    """Each size of a batch with one thread and with all cores."""
    network = member.network
    forms = {"onnx": files.onnx, "int8": files.int8}
    if computes_in_half(files.fp16, place):
        forms["fp16"] = files.fp16
    for threads in sorted({1, cores()}):
        torch.set_num_threads(threads)
        runs = {"pytorch": network, **{n: _run(n, p, threads) for n, p in forms.items()}}
        for batch in BATCHES:
            images = torch.zeros(batch, *pictures.shape)
            passes = {name: _pass(run, images) for name, run in runs.items()}
            with torch.inference_mode():
                yield Timing(batch, threads, interleaved(passes, rounds))


def _pass(run: Callable[[torch.Tensor], object], images: torch.Tensor) -> Callable[[], object]:
    return lambda: run(images)
