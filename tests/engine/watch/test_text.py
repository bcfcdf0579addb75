"""Numbers as a person reads them."""

from __future__ import annotations

from vitnas.engine.watch.text import replicates_text


def test_one_replicate_is_no_plural() -> None:
    assert [replicates_text(number) for number in (0, 1, 2)] == [
        "0 replicates",
        "1 replicate",
        "2 replicates",
    ]
