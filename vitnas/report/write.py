"""Writes tables, plots, pages and model files into a run's folder, from the `Run` alone."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from vitnas.config.costs import COSTS, MEASURED
from vitnas.config.files import dump_yaml
from vitnas.errors import RunError, reason_of
from vitnas.files import encoded, own_folder, read_bytes, write_bytes, write_text
from vitnas.plugins import closed
from vitnas.records import TrialRecord
from vitnas.report.facts import space_name
from vitnas.report.networks import network_line
from vitnas.report.page import render_pages
from vitnas.report.plots import front_png
from vitnas.report.tables import baselines_csv, front_csv, trials_csv
from vitnas.report.text import cost_text, count_text, listed, percent_text, plural
from vitnas.run import Run
from vitnas.versus import versus


@closed()
def write_report(run: Run) -> None:
    """Write trials.csv, front.csv, front.png, report.md, report.html and configs/ into `run.path`.

    It works at any moment of a run. Without a complete trial the tables are empty and say so.

    Raises:
        RunError: the folder cannot be written.
    """
    picture = front_png(run)
    pages = render_pages(run, picture)
    texts = {
        "trials.csv": trials_csv(run),
        "front.csv": front_csv(run),
        "report.md": pages.markdown,
        "report.html": pages.html,
    }
    if run.baselines:
        found = versus(run)
        comparison = None if found is None else asdict(found)
        texts["baselines.csv"] = baselines_csv(run)
        texts["comparison.json"] = json.dumps(comparison, indent=2) + "\n"
    try:
        write_bytes(run.path / "front.png", picture)
        for name, text in texts.items():
            write_text(run.path / name, text)
        _write_configs(run)
    except OSError as error:
        file = error.filename or run.path
        raise RunError(f"{file}: the report cannot be written: {reason_of(error)}") from None


def _write_configs(run: Run) -> None:
    """Write `configs/<trial>.yaml` for every complete trial."""
    members = {trial.number for trial in run.front}
    known = [trial for trial in run.complete if trial.config]
    folder = own_folder(run.path / "configs") if known else run.path
    for trial in known:
        text = config_text(run, trial, on_front=trial.number in members)
        _write_changed(folder / f"{trial.number}.yaml", text)


def _write_changed(path: Path, text: str) -> None:
    """Write a file if its text differs: to write a thousand files takes seconds."""
    content = encoded(text)
    try:
        same = read_bytes(path, len(content)) == content
    except OSError:
        same = False
    if not same:
        write_bytes(path, content)


def config_text(run: Run, trial: TrialRecord, *, on_front: bool) -> str:
    """A model file. Its first lines name the trial, its scores and its costs."""
    lines = [
        network_line(trial),
        f"Trial {trial.number} of {run.path.name}, space {space_name(run)}"
        + (", on the front." if on_front else "."),
        _numbers_line(run, trial),
        _provenance_line(run, trial),
    ]
    head = "".join(f"# {' '.join(line.split())}\n" for line in lines if line)
    return head + dump_yaml(trial.config)


def _numbers_line(run: Run, trial: TrialRecord) -> str:
    reached = trial.mean_test_top1
    test = "" if reached is None else f", {percent_text(reached)} % on the test split"
    top1 = f"{run.quality.capitalize()} {percent_text(trial.top1)} %"
    return (
        f"{top1} on the scoring split{test}, after "
        f"{plural(trial.epochs, 'epoch')}{_seeds(trial)}; {trial.flops:,} FLOPs "
        f"({count_text(trial.flops)}), {trial.num_params:,} parameters{_measured_text(trial)}."
    )


def _seeds(trial: TrialRecord) -> str:
    number = len(trial.trainings)
    return " with one seed" if number == 1 else f", the mean of {plural(number, 'training')}"


def _measured_text(trial: TrialRecord) -> str:
    known = [(COSTS[name], trial.measured[name]) for name in MEASURED if name in trial.measured]
    parts = [f"{cost_text(kind.name, value)} {kind.noun}" for kind, value in known]
    return f", {listed(parts)} on {trial.measured_on}" if parts else ""


def _provenance_line(run: Run, trial: TrialRecord) -> str:
    session = run.environment.last
    parts = {
        "data": run.environment.data.name,
        "seed": trial.seed,
        "vitnas": session.versions.get("vitnas"),
        "git": session.git_revision,
        "key": trial.key,
    }
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value not in (None, ""))
