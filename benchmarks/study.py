"""What the papers' ideas buy at like FLOPs: rows of the small twins, trained with several seeds.

    python benchmarks/study.py              trains the twins of study.yaml, then writes the page
    python benchmarks/study.py RUN...       writes the page from these runs of twins
    python benchmarks/study.py TABLE.csv    writes it from the table that it wrote before

The page is docs/study.md, the table docs/study.csv: every training with its curve.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import hypot, log2, sqrt
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import yaml
from common import ROOT, Bound, Figures, conclude, rounded, show
from scipy.stats import t as student
from study_search import FOUND, section

from vitnas.api import load_run, load_space, search
from vitnas.noise import PRIOR_DEGREES, Noise, measure
from vitnas.records import Outcome

SEEDS, IMAGES = 3, 3000  # trainings of a row, and images that score it
PAGE, TABLE = ROOT / "docs" / "study.md", ROOT / "docs" / "study.csv"
SAME = "cannot be told apart"
HEAD = ("twin", "row", "flops", "num_params", "seed", "curve")


class Training(NamedTuple):
    """One training of a row; `curve` is top-1 in percent on the scoring images, by epoch."""

    twin: str
    row: str
    flops: int
    num_params: int
    seed: int
    curve: tuple[float, ...]


@dataclass(frozen=True)
class Idea:
    """What is compared: pairs of rows of a twin, (with the idea, without it).

    Attributes:
        claim: what the paper says, with its place.
    """

    name: str
    twin: str
    pairs: Sequence[tuple[str, str]]
    claim: str


_FILE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_TEXT: str = _FILE["text"]
IDEAS = tuple(Idea(**idea) for idea in _FILE["ideas"])
SCALED: dict[str, str] = _FILE["scaled"]
"""Rows that differ in width or depth alone, by twin and the beginning of their names."""


def row_of(params: Mapping[str, Any]) -> str:
    """The name of a row: what its choices have, by their names."""
    return " ".join(str(value) for _, value in sorted(params.items()))


def trainings_of(folder: Path) -> list[Training]:
    """The complete trainings of a run, those with other seeds included."""
    run = load_run(folder)
    rows = {trial.key: row_of(trial.params) for trial in run.complete}
    return [
        Training(
            run.name.removeprefix("small_"), rows[t.key], t.flops, t.num_params, t.seed, t.curve
        )
        for t in (*run.trials, *run.replicates)
        if t.outcome is Outcome.COMPLETE
    ]


def read_table(path: Path) -> list[Training]:
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Training(
                line["twin"],
                line["row"],
                *(int(line[name]) for name in HEAD[2:5]),
                tuple(map(float, line["curve"].split())),
            )
            for line in csv.DictReader(file)
        ]


def write_table(path: Path, trainings: Iterable[Training]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for training in sorted(trainings):
            curve = " ".join(f"{top1:.4f}" for top1 in training.curve)
            writer.writerow([*training[:-1], curve])


class Estimate(NamedTuple):
    """A number, its standard error and the degrees of freedom behind the error."""

    value: float
    error: float
    degrees: float

    @property
    def margin(self) -> float:
        """Half of the 95 % interval."""
        return self.error * float(student.ppf(0.975, self.degrees))

    def __add__(self, other: Estimate) -> Estimate:  # type: ignore[override]
        """The sum of two independent estimates (Welch and Satterthwaite's degrees)."""
        one, two = self.error**2, other.error**2
        degrees = (one + two) ** 2 / (one**2 / self.degrees + two**2 / other.degrees)
        return Estimate(self.value + other.value, sqrt(one + two), degrees)

    def times(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.error * abs(factor), self.degrees)


class Twin:
    """The trainings of one twin, by row."""

    def __init__(self, trainings: Sequence[Training]) -> None:
        self.top1: dict[str, list[float]] = defaultdict(list)
        self.flops: dict[str, int] = {}
        for training in trainings:
            self.top1[training.row].append(training.curve[-1])
            self.flops[training.row] = training.flops

    def difference(self, pairs: Sequence[tuple[str, str]], noise: Noise) -> Estimate:
        """The mean over `pairs` of top-1 with the idea less top-1 without it."""
        weights: dict[str, float] = defaultdict(float)
        for pair in pairs:
            for row, sign in zip(pair, (1, -1), strict=True):
                weights[row] += sign / len(pairs)
        value = sum(weight * fmean(self.top1[row]) for row, weight in weights.items())
        errors = [
            weight * noise.error(fmean(self.top1[row]), len(self.top1[row]))
            for row, weight in weights.items()
        ]
        return Estimate(value, hypot(*errors), noise.degrees)

    def doublings(self, pairs: Sequence[tuple[str, str]]) -> float:
        """The mean over `pairs` of how often the FLOPs double with the idea."""
        return fmean(log2(self.flops[one] / self.flops[other]) for one, other in pairs)

    def has(self, idea: Idea) -> bool:
        return {row for pair in idea.pairs for row in pair} <= set(self.top1)


def noise_of(twins: Mapping[str, Twin]) -> Noise:
    """How far trainings of one row scatter, pooled over the rows of all twins."""
    return measure([top1 for twin in twins.values() for top1 in twin.top1.values()], IMAGES)


def rate_of(twins: Mapping[str, Twin]) -> Estimate:
    """Points of top-1 for each doubling of FLOPs by width or depth alone.

    One slope for all and one level for each twin, by least squares on the rows' means, so that the
    error contains what a straight line leaves out.
    """
    columns, scores = [], []
    names = [name for name in SCALED if name in twins]
    for name in names:
        for row, top1 in twins[name].top1.items():
            if row.startswith(SCALED[name]):
                level = [float(name == other) for other in names]
                columns.append([log2(twins[name].flops[row]), *level])
                scores.append(fmean(top1))
    x, y = np.array(columns), np.array(scores)
    found, *_ = np.linalg.lstsq(x, y, rcond=None)
    degrees = len(y) - x.shape[1]
    variance = float(((y - x @ found) ** 2).sum()) / degrees
    return Estimate(float(found[0]), sqrt(variance * float(np.linalg.inv(x.T @ x)[0, 0])), degrees)


def verdict(estimate: Estimate) -> str:
    if abs(estimate.value) <= estimate.margin:
        return SAME
    return "More" if estimate.value > 0 else "Less"


def interval(estimate: Estimate) -> str:
    low, high = estimate.value - estimate.margin, estimate.value + estimate.margin
    return f"{estimate.value:+.2f} ({low:+.2f} to {high:+.2f})".replace("-", "−")


def compared(twins: Mapping[str, Twin]) -> list[tuple[Idea, Estimate, Estimate]]:
    """Every idea whose rows were trained: the difference as trained, and at like FLOPs."""
    rate, noise = rate_of(twins), noise_of(twins)
    found = []
    for idea in IDEAS:
        if idea.twin in twins and twins[idea.twin].has(idea):
            twin = twins[idea.twin]
            raw = twin.difference(idea.pairs, noise)
            found.append((idea, raw, raw + rate.times(-twin.doublings(idea.pairs))))
    return found


def page_of(trainings: Sequence[Training]) -> str:
    """The page in Markdown."""
    twins = by_twin(trainings)
    rate, noise = rate_of(twins), noise_of(twins)
    counts = sorted({len(top1) for twin in twins.values() for top1 in twin.top1.values()})
    proxy = load_space(f"small/{trainings[0].twin}").config.proxy
    head = _TEXT.format(
        trainings=len(trainings),
        networks=sum(len(twin.top1) for twin in twins.values()),
        seeds=" to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))),
        all_seeds=SEEDS,
        epochs=proxy.epochs,
        share=f"{100 * proxy.train_fraction:g}",
        rate=interval(rate),
        degrees=int(rate.degrees),
        error=f"{noise.error(80.0):.2f}",
        repeats=noise.degrees - PRIOR_DEGREES,
    )
    parts = [head, *_ideas(twins), "", _summary(twins), ""]
    parts += [section(json.loads(FOUND.read_text(encoding="utf-8"))), "## Every row", ""]
    return "\n".join([*parts, *_rows(twins)]) + "\n"


def _summary(twins: Mapping[str, Twin]) -> str:
    """Which intervals leave out 0."""
    found = compared(twins)
    parts = []
    for text in ("More", "Less"):
        named = [
            idea.name + ("" if verdict(raw) == text else " (at like FLOPs alone)")
            for idea, raw, like in found
            if verdict(like) == text
        ]
        parts.append(f"**{text}**: {'; '.join(named) or 'none'}.")
    same = sum(verdict(like) == SAME for _, _, like in found)
    return " ".join(
        [*parts, f"The other {same} cannot be told apart from nothing by these trainings."]
    )


def _ideas(twins: Mapping[str, Twin]) -> Iterator[str]:
    yield "| idea | twin | pairs | FLOPs, times | as trained | at like FLOPs | reads | the paper |"
    yield "|---|---|--:|--:|---|---|---|---|"
    for idea, raw, like in compared(twins):
        times = f"{2 ** twins[idea.twin].doublings(idea.pairs):.2f}"
        cells = (idea.name, f"`{idea.twin}`", str(len(idea.pairs)), times)
        results = (interval(raw), interval(like), verdict(like), idea.claim)
        yield f"| {' | '.join((*cells, *results))} |"


def _rows(twins: Mapping[str, Twin]) -> Iterator[str]:
    yield "| twin | row | FLOPs, M | seeds | top-1, % |"
    yield "|---|---|--:|--:|--:|"
    for name, twin in sorted(twins.items()):
        for row, top1 in sorted(twin.top1.items(), key=lambda item: (twin.flops[item[0]], item[0])):
            flops = twin.flops[row] / 1e6
            yield f"| `{name}` | {row} | {flops:.3f} | {len(top1)} | {fmean(top1):.2f} |"


def by_twin(trainings: Iterable[Training]) -> dict[str, Twin]:
    sorted_in: dict[str, list[Training]] = defaultdict(list)
    for training in trainings:
        sorted_in[training.twin].append(training)
    return {name: Twin(group) for name, group in sorted_in.items()}


def train(twin: str, seed: int, folder: Path, quick: bool = False) -> list[Training]:
    """Train every row of a twin once; a run that has ended is only read."""
    space = load_space(f"small/{twin}")
    if quick:
        changes = {"epochs": 1, "train_fraction": 0.005}
        space = space.with_proxy(space.config.proxy.model_copy(update=changes))
    rows = {config.key for config in space.networks()}
    search(
        space,
        out=folder / f"{twin}-{seed}",
        trials=len(rows),
        sampler="random",
        pruner="none",
        baselines=False,
        backend="serial",
        seed=seed,
    )
    return trainings_of(folder / f"{twin}-{seed}")


def gathered(sources: Sequence[Path], quick: bool) -> list[Training]:
    if sources:
        parts = [read_table(p) if p.suffix == ".csv" else trainings_of(p) for p in sources]
        return [training for part in parts for training in part]
    if quick:
        with tempfile.TemporaryDirectory() as folder:
            jobs = [("deepvit_table1", 0), ("deepvit_fig1", 0), ("deepvit_fig1", 1)]
            return [t for job in jobs for t in train(*job, Path(folder), quick=True)]
    twins = dict.fromkeys([*(idea.twin for idea in IDEAS), *SCALED])
    jobs = [(twin, seed) for seed in range(SEEDS) for twin in twins]
    return [t for job in jobs for t in train(*job, ROOT / "results" / "study")]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="*", type=Path, help="runs of twins, or a table of them")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it still run?")
    options = parser.parse_args()
    trainings = sorted(gathered(options.sources, options.quick))
    found = compared(by_twin(trainings))
    show(
        ("idea", "as trained", "at like FLOPs", "reads"),
        [(i.name, interval(raw), interval(like), verdict(like)) for i, raw, like in found],
    )
    if not options.quick:
        write_table(TABLE, trainings)
        PAGE.write_text(page_of(read_table(TABLE)), encoding="utf-8")
    figures: Figures = {"ideas": len(found), "trainings": len(trainings)} | {
        f"{idea.name}: at like FLOPs": rounded(like.value) for idea, _, like in found
    }
    targets: dict[str, Bound] = {"ideas": {"min": 2 if options.quick else len(IDEAS)}}
    conclude("study", options.quick, figures, targets)


if __name__ == "__main__":
    main()
