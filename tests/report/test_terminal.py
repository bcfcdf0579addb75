"""The front as plain text."""

from pathlib import Path

from tests.report.runs import run_of, trial
from vitnas.report import front_text

PATH = Path("results/small")


def test_columns_are_aligned() -> None:
    run = run_of(PATH, trial(0, 9.5, 900_000), trial(14, 60.0, 12_000_000, test_top1=59.5))
    assert front_text(run).splitlines() == [
        "trial  top-1 %  expected %  test %   FLOPs  params  network",
        "    0     9.50        9.50       –   900 k  40.0 k  1x dwconv 32 > 1x mhsa 64 h2",
        "   14    60.00       60.00   59.50  12.0 M  40.0 k  1x dwconv 32 > 1x mhsa 64 h2",
        "expected: from the scores of all networks; the front is the best by it",
    ]


def test_an_empty_front_says_so() -> None:
    assert "the front is empty" in front_text(run_of(PATH))
