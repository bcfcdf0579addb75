"""Writes down what a search and replays give: `python -m tests.engine.golden.write FOLDER`.

It uses the public verbs alone, so an older vitnas can write the files that a newer one has to
give again.
"""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import vitnas

OPTIONS: dict[str, Any] = {
    "trials": 8,
    "seed": 0,
    "sampler": "ehvi",
    "pruner": "front",
    "replicates": 1,
    "backend": "serial",
    "baselines": False,
    "gpus_per_trial": 0,
}
FIELDS = (
    *("number", "outcome", "key", "params", "config", "seed", "flops", "num_params", "curve"),
    *("test_top1", "error", "duplicate_of", "replicate_of", "origin", "taken"),
)
_FOUR = "--sampler random --sampler ehvi --pruner none --pruner both"
DIGITS = Path(__file__).parents[2] / "config" / "golden" / "spaces" / "digits.yaml"
PAIRS = {
    "digits": f"{_FOUR} --trials 40".split(),
    "fashion_32": f"{_FOUR} --trials 25 --workers 3".split(),
}


def small_space(file: Path) -> Path:
    """The space `digits` as it was, with shorter trainings, as a file."""
    from vitnas.config.files import dump_yaml

    tree = dict(vitnas.load_space(DIGITS).to_tree())
    tree["proxy"] = {**tree["proxy"], "epochs": 4, "train_fraction": 0.2}
    file.write_text(dump_yaml(tree))
    return file


def search(folder: Path) -> dict[str, Any]:
    """What a serial search leaves in its study, and the order in which it happened."""
    events: list[tuple[str, int]] = []
    run = vitnas.search(
        small_space(folder / "small.yaml"),
        folder / "run",
        listener=lambda event, trial: events.append((event, trial.number)),
        **OPTIONS,
    )
    trials = sorted((*run.trials, *run.replicates), key=lambda trial: trial.number)
    return {
        "trials": [{name: getattr(trial, name) for name in FIELDS} for trial in trials],
        "events": events,
        "front": [trial.number for trial in run.front],
        "weights": sorted(file.name for file in (run.path / "weights").iterdir()),
    }


def replay(table: str) -> Any:
    """What `vitnas replay` prints of a recorded table."""
    from vitnas.cli import main as command

    with redirect_stdout(StringIO()) as printed, suppress(SystemExit):
        command(["replay", table, *PAIRS[table], "--seeds", "2", "--json"])
    return json.loads(printed.getvalue())


def main(folder: Path) -> None:
    with TemporaryDirectory() as scratch:
        found = {
            "search": search(Path(scratch)),
            **{f"replay_{name}": replay(name) for name in PAIRS},
        }
    for name, tree in found.items():
        (folder / f"{name}.json").write_text(json.dumps(tree, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
