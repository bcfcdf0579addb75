"""TensorBoard's own reader finds the curves."""

from __future__ import annotations

from pathlib import Path

from vitnas.training.events import Events, check_package


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """(step, value) by tag of what was written into a folder."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_values_are_found_by_their_tags_and_forgotten_when_asked(tmp_path: Path) -> None:
    check_package()
    for last in (2, 3):
        events = Events(tmp_path / "tb")
        events.forget()
        for step in range(1, last + 1):
            events.write(step, {"top1": 10.0 * step, "scales/a.b": 0.5})
        events.close()
        found = scalars(tmp_path / "tb")
        assert found["top1"] == [(step, 10.0 * step) for step in range(1, last + 1)]
        assert found["scales/a.b"] == [(step, 0.5) for step in range(1, last + 1)]


def test_what_writes_nothing_leaves_nothing(tmp_path: Path) -> None:
    events = Events(tmp_path / "tb")
    events.forget()
    events.close()
    assert not list(tmp_path.iterdir())
