"""README.md of a network in a folder: its description, its accuracy and its origin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from vitnas import __version__
from vitnas.config.design import Design
from vitnas.config.differences import mark_of
from vitnas.config.model import ModelConfig
from vitnas.config.notation import human
from vitnas.cost.closed_form import Cost
from vitnas.environment import command_line
from vitnas.errors import printable
from vitnas.exported.design import file_of, line_of, size_of_design
from vitnas.noise import wilson
from vitnas.words import plural

if TYPE_CHECKING:
    from vitnas.exported.conversion import Conversion
    from vitnas.exported.write import Written
    from vitnas.records import TrialRecord
    from vitnas.run import Run


@dataclass(frozen=True)
class Scores:
    """The accuracy of the exported weights.

    Attributes:
        epochs: number of epochs of their training.
        top1: top-1 in percent on the scoring split, or None.
        test_top1: top-1 in percent on the test split, or None.
        anew: whether they were trained for the export, and scored in float; else they and their
            top-1, which may be in int8, come from the search.
    """

    epochs: int
    top1: float | None
    test_top1: float | None
    anew: bool


def model_card(
    run: Run,
    trial: TrialRecord,
    config: ModelConfig,
    scores: Scores,
    folder: Path,
    command: str | None = None,
    written: Written | None = None,
) -> str:
    """The card as Markdown. Unknown values are left out."""
    session, data = run.environment.last, run.environment.data
    known = data.normalisation(config.image_hw)
    return card_of(
        config,
        folder,
        "card.md.j2",
        command,
        trial=trial,
        standalone=written,
        scores=scores,
        quality="top-1" if scores.anew else run.quality,
        folds=_folds(run),
        run=run,
        space=run.space.get("name") or run.name,
        error=_error(run, trial),
        chance=run.chances.get(trial.number),
        on_front=any(member.number == trial.number for member in run.front),
        seed=run.environment.seed,
        title=title_of(run, trial, scores),
        scored=interval(
            scores.top1, None if scores.anew and _folds(run) > 1 else data.num_val_images
        ),
        tested=interval(scores.test_top1, data.num_test_images),
        data=_of_data(data.told()),
        mean=numbers(None if known is None else known.mean),
        std=numbers(None if known is None else known.std),
        proxy=listed(run.environment.proxy.told()),
        search_command=session.command,
        git_revision=session.git_revision,
        versions=listed(session.versions) or "not recorded",
    )


def conversion_card(
    conversion: Conversion, command: str | None = None, written: Written | None = None
) -> str:
    """The card of converted weights: their source, options that were set, tensors left out."""
    return card_of(
        conversion.config,
        conversion.folder,
        "conversion.md.j2",
        command,
        standalone=written,
        title=conversion.layout.title,
        file=conversion.file.name,
        sha256=conversion.sha256,
        entry=conversion.entry,
        tensors=conversion.tensors,
        dropped=conversion.dropped,
        remarks=conversion.remarks,
        options=conversion.options,
    )


def card_of(
    design: Design, folder: Path, template: str, command: str | None = None, **facts: Any
) -> str:
    """A card as Markdown.

    Args:
        design: the network.
        folder: where it is written.
        template: a file in `templates`.
        command: what wrote it; by default the command line of this process.
        **facts: what the template needs in addition to the network.
    """
    cost = size_of_design(design)
    environment = Environment(
        loader=PackageLoader("vitnas.exported"),
        autoescape=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    card = environment.get_template(template).render(
        name=folder.name,
        source=repr(folder.as_posix()),
        network=line_of(design),
        design_file=file_of(design),
        cost=cost,
        stages=_flops_by_stage(cost) if isinstance(cost, Cost) else {},
        shape=(design.in_chans, *design.image_hw),
        num_classes=design.num_classes,
        version=__version__,
        command=command or command_line(),
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        **facts,
    )
    return re.sub(r"\n{3,}", "\n\n", card).rstrip() + "\n"


def title_of(run: Run, trial: TrialRecord, scores: Scores) -> str:
    """`digits-trial-7: 98.61 % top-1 on the scoring split, 210k FLOPs`."""
    accuracy = "" if scores.top1 is None else f"{scores.top1:.2f} % top-1 on the scoring split, "
    return f"{name_of(run, trial)}: {accuracy}{human(trial.flops)} FLOPs"


def name_of(run: Run, trial: TrialRecord) -> str:
    """`digits-trial-7`."""
    return f"{printable(str(run.space.get('name') or run.name))}-trial-{trial.number}"


def _of_data(told: Mapping[str, Any]) -> str:
    """Its name and counts; the digest of its images, and how many files were skipped, in words."""
    text = listed(told, skip=("mean", "std", "by_size", "classes", "fingerprint", "skipped"))
    digest = mark_of(told.get("fingerprint") or {})
    skipped = len(told.get("skipped") or ())
    more = [f"digest of the images {digest}"] if digest else []
    more += [f"{plural(skipped, 'file')} skipped"] if skipped else []
    return ", ".join([text, *more] if text else more)


def _folds(run: Run) -> int:
    """In how many folds each network of the search was trained; the weights are the first one's."""
    data = run.space.get("data")
    folds = data.get("folds") if isinstance(data, Mapping) else None
    return folds if isinstance(folds, int) else 1


def _flops_by_stage(cost: Cost) -> dict[str, tuple[int, float]]:
    """FLOPs and their share in percent: of each stage, then of stem, head and the rest."""
    found: dict[str, int] = {}
    for row in cost.rows:
        name = row.kind if row.stage is None else f"stage {row.stage + 1}"
        found[name] = found.get(name, 0) + row.flops
    return {name: (flops, 100 * flops / cost.flops) for name, flops in found.items() if flops}


def _error(run: Run, trial: TrialRecord) -> float | None:
    """Standard error of the trial's mean top-1 in points; None without replicates."""
    if run.noise is None or trial.top1 is None or not trial.replicates:
        return None
    return run.noise.error(trial.top1, len(trial.trainings))


def interval(top1: float | None, images: int | None) -> str:
    """The 95 % interval of a top-1 in percent from the number of images alone (Wilson).

    `97.10 to 99.31 % (95 %, Wilson, of 360 images)`; empty where either is not known.
    """
    if top1 is None or not images:
        return ""
    low, high = wilson(min(round(top1 / 100 * images), images), images)
    return f"{low:.2f} to {high:.2f} % (95 %, Wilson, of {images:,} images)"


def listed(tree: Mapping[str, Any], skip: Sequence[str] = ()) -> str:
    """`name cifar10, num_classes 10`. What is None or empty is left out; of a tree its values."""
    known = ((name, _plain(value)) for name, value in tree.items() if name not in skip)
    return ", ".join(f"{name} {value}" for name, value in known if value)


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return listed(value)
    if isinstance(value, (list, tuple)):
        return " and ".join(map(str, value))
    return "" if value is None else str(value)


def numbers(values: Sequence[float] | None) -> str:
    """One number for each channel, with four digits; empty when not known."""
    return ", ".join(f"{value:.4f}" for value in values or ())
