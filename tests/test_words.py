"""Words that depend on a number."""

from __future__ import annotations

from vitnas.words import plural


def test_one_of_a_thing_is_no_plural() -> None:
    assert plural(1, "trial") == "1 trial"
    assert plural(0, "trial") == "0 trials"
    assert plural(1200, "trial") == "1,200 trials"
    assert plural(2, "property") == "2 properties"
    assert plural(2, "class") == "2 classes"
