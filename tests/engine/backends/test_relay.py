"""What another process tells arrives here, once and in its order."""

from __future__ import annotations

import pickle
from pathlib import Path

from vitnas.data.telling import Teller
from vitnas.engine.backends.relay import Relay


def test_lines_arrive_once_and_in_their_order() -> None:
    told: list[tuple[str, str]] = []
    here = Teller(lambda line: told.append(("notice", line)), lambda line: told.append(("", line)))
    with Relay(here) as relay:
        relay.pass_on()
        there: Teller = pickle.loads(pickle.dumps(relay.sender))
        there.notice("a line\nof two, with ━")
        there.doing("1 %")
        relay.pass_on()
        there.doing("2 %")
        relay.pass_on()
        relay.pass_on()
    assert told == [("notice", "a line\nof two, with ━"), ("", "1 %"), ("", "2 %")]


def test_half_a_line_waits_for_its_end() -> None:
    told: list[str] = []
    with Relay(Teller(told.append)) as relay:
        path = Path(relay.sender.notice._path)  # type: ignore[attr-defined]
        path.write_text('["notice", "ab')
        relay.pass_on()
        assert told == []
        with path.open("a") as file:
            file.write('c"]\n')
        relay.pass_on()
    assert told == ["abc"]
    assert not path.exists()
