"""What other people wrote is printed without what a terminal obeys."""

from __future__ import annotations

import pytest

from vitnas.cli.streams import complain, say


def test_escapes_are_spelled_out(capsys: pytest.CaptureFixture[str]) -> None:
    say("a \x1b]0;own\x07 b\nsecond – line\r")
    complain("\x1b[31m")
    printed = capsys.readouterr()
    assert printed.out == "a \\x1b]0;own\\x07 b\nsecond – line\\r\n"
    assert printed.err == "vitnas: \\x1b[31m\n"
