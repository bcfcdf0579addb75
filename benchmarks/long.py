"""Trained for long, is a front still better than its baselines? For the run of a search.

`python benchmarks/long.py RUN` is `vitnas confirm RUN`: networks of the front, evenly over log
FLOPs, and the best baselines of like FLOPs are trained from nothing for `--epochs`, with `--seeds`.
The figures are the differences in points of top-1 on the run's test images. Both sides are chosen
by the scoring images. A quick run searches scikit-learn's digits first.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from common import ROOT, Bound, Figures, conclude, fresh_process, quick_parser, rounded, show

from vitnas import api
from vitnas.errors import RunError, VitnasError
from vitnas.report.long_against import against_text, long_against
from vitnas.run import Run

EPOCHS, SEEDS, NETWORKS = 40, 3, 3


def compared(run: Run) -> Figures:
    """Print each pair, and tell by how many points ours are above theirs."""
    found = [one for one in long_against(run) if not one.theirs.weights]
    if not found:
        raise RunError(f"{run.path}: has no baseline with the FLOPs of a network of its front")
    rows = []
    for one in found:
        for who, side in zip((one.ours, one.theirs), one.sides, strict=True):
            rows.append((who.started, f"{side.flops:,}", f"{side.top1:.2f}", str(side.trainings)))
    show(("network", "FLOPs", "test top-1", "trainings"), rows)
    print(against_text(run))
    points = [one.points for one in found]
    return {
        "networks": [row[0] for row in rows],
        "points": [f"{one:+.2f}" for one in points],
        "mean_points": rounded(statistics.fmean(points)),
        "least_points": rounded(min(points)),
    }


def main() -> None:
    parser = quick_parser(__doc__)
    parser.add_argument("run", type=Path, nargs="?", help="folder of a search with baselines")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="of each training")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="trainings of each network")
    parser.add_argument("--networks", type=int, default=NETWORKS, help="of the front")
    asked = parser.parse_args()
    targets: dict[str, Bound] = {"mean_points": {"min": -100.0 if asked.quick else 0.0}}
    with tempfile.TemporaryDirectory() as folder:
        if asked.quick:
            run = Path(folder) / "run"
            fresh_process(str(ROOT / "search.py"), "digits", "--out", str(run), "--trials", "6")
            found = api.confirm(run, networks=1, epochs=1)
        elif asked.run is None:
            parser.error("RUN is needed")
        else:
            options = {name: getattr(asked, name) for name in ("epochs", "seeds", "networks")}
            found = api.confirm(asked.run, **options)
        epochs = 1 if asked.quick else asked.epochs
        conclude("long", asked.quick, {"epochs": epochs, **compared(found)}, targets)


if __name__ == "__main__":
    try:
        main()
    except VitnasError as wrong:
        sys.exit(str(wrong))
