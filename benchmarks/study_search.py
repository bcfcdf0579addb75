"""What a search of the 32 px papers' space says of their ideas: a section of docs/study.md.

    python benchmarks/study_search.py        searches, then writes
    python benchmarks/study_search.py RUN    writes from a run of study_papers_32.yaml

It writes docs/study_search.json, what each choice buys, and docs/study_papers_32.json.gz, the
curves for `vitnas replay`; `python benchmarks/study.py docs/study.csv` then makes the page.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from common import ROOT, conclude, rounded, show

from vitnas.api import load_run, load_space, search
from vitnas.replay.tables import table_of, write_table
from vitnas.report.effects_text import effect_views
from vitnas.run import Run

SPACE = ROOT / "benchmarks" / "study_papers_32.yaml"
FOUND, TABLE = ROOT / "docs" / "study_search.json", ROOT / "docs" / "study_papers_32.json.gz"
IDEAS = ("token_mixer", "passes", "groups", "nll_ratio", "residual", "loop", "gamma", "blocks")
"""The ends of the axes that the papers speak of; `reattention_blocks` is one."""
TRIALS = 36

_TEXT = """\
## A search of the papers' space

`python benchmarks/study_search.py` searched [`papers_32`](../benchmarks/study_papers_32.yaml) with
networks of {low} to {high} M FLOPs, without early stopping: {trials} trainings of {epochs} epochs
on the same images as above, {complete} of them to the end. The best has {best:.2f} %, and {front}
networks are on the front. Their scores have a standard deviation of {spread:.1f} points, and one
score has a standard error of {error:.1f} points: these networks are nearly alike.
`vitnas replay docs/study_papers_32.json.gz` compares samplers on their curves.

The table is what the run's report says of the axes that the papers speak of
([report.md](report.md)). One choice of a network on the front is changed at a time, the model
that gives expected top-1 tells what this does, and what its FLOPs are worth is taken off. "Best
against worst" are the points between an axis's best and worst value. "Matched pairs" are trained
networks of like FLOPs with one and the other, where there are three pairs. All have the 95 %
interval. Each network was trained once. Twice the FLOPs are worth {doubling} points here.
`stages#0` are pyramids of three stages, `stages#1` of four.
"""


def found_of(run: Run) -> dict[str, Any]:
    """What the page needs of a run."""
    views, ends = effect_views(run), [trial.curve[-1] for trial in run.complete]
    limits = run.space["limits"]["flops"]
    told = [axis | {"reads": "differ"} for axis in views["effects"]]
    other = [axis | {"reads": "cannot be told apart"} for axis in views["unclear_effects"]]
    return {
        "low": f"{limits['min'] / 1e6:g}",
        "high": f"{limits['max'] / 1e6:g}",
        "trials": sum(trial.outcome.is_trial for trial in run.trials),
        "complete": len(ends),
        "epochs": run.space["proxy"]["epochs"],
        "front": len(run.front),
        "spread": stdev(ends),
        "error": run.noise.error(fmean(ends)) if run.noise else 0.0,
        "best": max(ends),
        "doubling": views["doubling"] or "an unknown number of",
        "axes": [axis for axis in told + other if axis["name"].endswith(IDEAS)],
    }


def section(found: dict[str, Any]) -> str:
    """The section in Markdown."""
    return "\n".join([_TEXT.format(**found), *_rows(found["axes"])]) + "\n"


def _rows(axes: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| axis | networks changed | best | worst | best against worst | matched pairs | reads |"
    yield "|---|--:|---|---|---|---|---|"
    for axis in axes:
        cells = (f"`{axis['name']}`", str(axis["members"]), *_ends(axis))
        more = (f"{axis['gain']} ({axis['gain_interval']})", axis["matched"], axis["reads"])
        yield f"| {' | '.join((*cells, *more))} |"


def _ends(axis: dict[str, Any]) -> tuple[str, str]:
    """The axis's best value and its worst, each against the mean of all."""
    best, *_, worst = axis["values"]
    return f"`{best[0]}` {best[1]}", f"`{worst[0]}` {worst[1]}"


def searched(folder: Path, quick: bool) -> Run:
    """The run; one that has ended is only read."""
    space = load_space(SPACE)
    if quick:
        changes = {"epochs": 1, "train_fraction": 0.002}
        space = space.with_proxy(space.config.proxy.model_copy(update=changes))
    search(
        space,
        out=folder,
        trials=4 if quick else TRIALS,
        pruner="none",
        baselines=False,
        tune=False,
        backend="serial" if quick else "tune",
    )
    return load_run(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path, help="a run of study_papers_32.yaml")
    parser.add_argument("--quick", action="store_true", help="small sizes: does it still run?")
    options = parser.parse_args()
    if options.run is not None:
        run = load_run(options.run)
    elif options.quick:
        with tempfile.TemporaryDirectory() as folder:
            run = searched(Path(folder) / "run", quick=True)
    else:
        run = searched(ROOT / "results" / "study" / "papers_32", quick=False)
    found = found_of(run)
    show(("axis", "best", "worst"), [(axis["name"], *_ends(axis)) for axis in found["axes"]])
    if not options.quick:
        FOUND.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        write_table(table_of(run), TABLE)
    figures = {
        "trainings": found["complete"],
        "axes": len(found["axes"]),
        "best": rounded(found["best"]),
    }
    conclude(
        "study_search",
        options.quick,
        figures,
        {"trainings": {"min": 2 if options.quick else TRIALS - 4}},
    )


if __name__ == "__main__":
    main()
