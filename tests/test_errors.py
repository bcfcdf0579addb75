"""How an error reads: one line, with file, address, value, rule and the nearest valid value."""

from __future__ import annotations

from typing import Any

import pytest

from vitnas.errors import (
    ConfigError,
    VitnasError,
    in_one_line,
    join_address,
    nearest_name,
    printable,
    shorten,
    spelled_out,
    typed,
)


def test_a_config_error_is_one_line_that_grows_outwards() -> None:
    error = ConfigError("must be even", address="depth", value=3, nearest=2)
    assert str(error) == "depth = 3: must be even (nearest: 2)"
    outer = error.at(file="s.yaml", prefix="model.stages[0]")
    assert str(outer) == "s.yaml: model.stages[0].depth = 3: must be even (nearest: 2)"
    assert str(outer.at(prefix="x")).startswith("s.yaml: x.model.stages[0].depth"), "keeps its file"


def test_an_error_never_spans_lines_or_moves_the_cursor() -> None:
    assert str(VitnasError("a\nb \x1b[2J")) == "a b \\x1b[2J"
    assert in_one_line("a  b\nc\x1b") == "a  b\\nc\\x1b"
    assert printable("a\n\tb\r") == "a b"
    assert spelled_out("a\nb\x07") == "a\nb\\x07"


def test_a_path_in_a_command_is_one_word_and_no_option() -> None:
    assert [typed(path) for path in ("run", "my run", "-run", "{{a}}")] == [
        "run", "'my run'", "./-run", "'{{a}}'"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        ("x", "'x'"),
        ([1, [2.5, "a"]], "[1, [2.5, 'a']]"),
        ({"a": [False]}, "{a: [false]}"),
        ("y" * 100, "'" + "y" * 56 + "..."),
    ],
)
def test_a_value_reads_as_in_yaml(value: Any, text: str) -> None:
    assert shorten(value) == text


def test_addresses_and_names() -> None:
    assert join_address("model", "stages", 2, "groups") == "model.stages[2].groups"
    assert join_address("", "a", "[0]", 1) == "a[0][1]"
    assert nearest_name("img_sise", ["img_size", "stages"]) == "img_size"
    assert nearest_name("zzz", ["img_size", "stages"]) is None
