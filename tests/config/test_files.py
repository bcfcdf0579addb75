"""Files are read with safe loaders, and what is wrong with them is said in one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vitnas.config.files import MAX_BYTES, parse_yaml, read_yaml
from vitnas.errors import ConfigError

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(['*' + old] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: !!python/object/apply:os.system ['true']", "line 1: not safe YAML"),
        ("a: !!python/name:os.system", "line 1: not safe YAML"),
        (BOMB, "more than 100,000 values, once its aliases expand"),
        ("a: &a [*a]", "more than 100,000 values, once its aliases expand"),
        ("a: 1\na: 2", "line 2: not safe YAML: the key 'a' stands twice"),
        ("a: [1, 2", "not safe YAML"),
        ('a: [1,\n"\\ud800"]', "line 2: not safe YAML: half of a surrogate pair is not a"),
        ('"\\udfff": 1', "line 1: not safe YAML: half of a surrogate pair"),
        ("- 1\n- 2", "must be a mapping"),
        ("", "must be a mapping"),
        ("a: !!timestamp 2026-01-01", "line 1: not safe YAML"),
        ("a: \x00", "not YAML"),
        ("b: 1\na: !!bool maybe", "line 2: not safe YAML: 'maybe' cannot be read as bool"),
        ("a: !!int ''", "line 1: not safe YAML: '' cannot be read as int"),
        ("a: !!float _", "cannot be read as float"),
        ("a: 0x" + "f" * 4000, "cannot be read as int"),
        ("a: " + "9" * 5000, "cannot be read as int"),
    ],
)
def test_bad_text_is_refused_in_one_line(text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, file="f.yaml")
    assert str(caught.value).startswith("f.yaml: ")
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_anchors_are_fine() -> None:
    assert parse_yaml("a: &x {b: 1}\nc: *x") == {"a": {"b": 1}, "c": {"b": 1}}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_yaml(tmp_path / "missing.yaml")
    with pytest.raises(ConfigError, match="is a directory"):
        read_yaml(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_yaml(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 1 MiB"):
        read_yaml(tmp_path / "large")


TEXTS: dict[str, tuple[bytes, str]] = {
    "not UTF-8": (b"name: \xff\xfe", "is not a text file in UTF-8"),
    "set": (b"a: !!set {b}", "line 1: not safe YAML"),
    "bytes": (b"a: !!binary aGk=", "line 1: not safe YAML"),
    "list as key": (b"? [a, b]\n: 3", "line 1: .*a key is text, and this one is read as seq"),
    "truth value as key": (b"a: 1\nyes: 3", "line 2: .*read as bool; quote it"),
    "number as key": (b"model: {3: 4}", "line 1: .*read as int"),
    "null as key": (b"~: 3", "line 1: .*read as null"),
    "two documents": (b"a: 1\n---\na: 2", "another document"),
    "deep list": (b"a: " + b"[" * 5000 + b"]" * 5000, "nested more than 60 levels deep"),
    "deep mapping": (b"a: " + b"{a: " * 200 + b"1" + b"}" * 200, "nested more than 60 levels"),
    "deep by aliases": (
        b"".join(b"k%d: &k%d [*k%d]\n" % (i, i, i - 1) for i in range(1, 90)).replace(
            b"[*k0]", b"[1]"
        ),
        "nested more than 60 levels deep",
    ),
    "bomb": (
        b"a0: &a0 [1]\n"
        + b"".join(b"a%d: &a%d [%s]\n" % (i, i, b"*a%d, " % (i - 1) * 9) for i in range(1, 12)),
        "more than 100,000 values, once its aliases expand",
    ),
    "endless number": (b"a: " + b"9" * 5000, "cannot be read as int"),
    "too large": (b"#" * (2 << 20), "larger than 1 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_text_that_is_no_file_of_ours(text: str, tmp_path: Path) -> None:
    content, expected = TEXTS[text]
    (tmp_path / "s.yaml").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_yaml(tmp_path / "s.yaml")
    line = str(caught.value)
    assert "\n" not in line
    assert re.search(rf"s\.yaml: .*{expected}", line), line
