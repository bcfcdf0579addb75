"""One line for every mistake, with the place, the rule and the nearest valid value."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.cli.conftest import (
    CONV,
    INF,
    MHSA,
    NAN,
    SERIAL,
    complaint,
    space_file,
    vitnas_says,
)

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "unknown key": ({"imgsize": 8}, r"model\.imgsize = 8: unknown key \(nearest: img_size\)"),
    "unknown top key": ({"/limts": {}}, r"limts = \{\}: unknown key \(nearest: limits\)"),
    "bracket in a key": ({"stages[0]": 1}, r"model\.stages\[0\] = 1: unknown key"),
    "a key named int": ({"/int": 1}, r"int = 1: unknown key"),
    "wrong type": ({"num_classes": "ten"}, r"model\.num_classes = 'ten': .*whole number"),
    "null": ({"stages": None}, r"model\.stages: is null and should be a list"),
    "mapping for list": ({"stages": {"a": 1}}, r"model\.stages = \{a: 1\}: should be a list"),
    "list for mapping": ({"stem": [1]}, r"model\.stem = \[1\]: should be a mapping"),
    "number as text": (
        {"/limits": {"flops": {"max": "5e6"}}},
        r"limits\.flops\.max = '5e6': YAML reads this as text.*\(nearest: 5\.0e\+6\)",
    ),
    "whole number as text": (
        {"stages": [CONV | {"depth": "1e1"}]},
        r"model\.stages\[0\]\.depth = '1e1': YAML reads this as text.*\(nearest: 10\)",
    ),
    "range as text": (
        {"drop_path_rate": {"float": [0.0, "5e-1"]}},
        r"model\.drop_path_rate\.float\[1\] = '5e-1': YAML .*\(nearest: 5\.0e-1\)",
    ),
    "empty choice": (
        {"drop_path_rate": {"choice": []}},
        r"model\.drop_path_rate\.choice = \[\]: a choice needs a list with one entry or more",
    ),
    "empty range": (
        {"reattention_blocks": {"int": [3, 1]}},
        r"model\.reattention_blocks\.int = \[3, 1\]: an empty range.*\(nearest: \[1, 3\]\)",
    ),
    "misspelt axis": ({"norm": {"choise": ["layernorm"]}}, r"model\.norm\.choise.*choice\)"),
    "nan": ({"drop_path_rate": NAN}, r"model\.drop_path_rate = nan: should be a finite number"),
    "infinite gamma": ({"broad": {"gamma": INF}}, r"model\.broad\.gamma = inf: .*finite number"),
    "infinite range": ({"drop_path_rate": {"float": [0.0, INF]}}, r"two finite numbers"),
    "nan step": ({"drop_path_rate": {"float": [0.0, 0.5], "step": NAN}}, r"step = nan: must be"),
    "range beyond floats": (
        {"drop_path_rate": {"float": [0, 10**400]}},
        r"model\.drop_path_rate\.float = .*two finite numbers",
    ),
    "number beyond floats": (
        {"stages": [CONV | {"embed_dim": 8 * 10**400}]},
        r"model\.stages\[0\]\.embed_dim = 8000.*\(nearest: 1000000\)",
    ),
    "negative": (
        {"stages": [CONV | {"depth": -1}]},
        r"model\.stages\[0\]\.depth = -1: .*\(nearest: 1\)",
    ),
    "heads": (
        {"stages": [{"token_mixer": "mhsa", "embed_dim": 16, "num_heads": 3}]},
        r"model\.stages\[0\]\.num_heads = 3: must divide embed_dim 16 \(nearest: 2\)",
    ),
    "no head fits": (
        {"stages": [CONV | {"token_mixer": "mhsa", "num_heads": {"choice": [3, 5]}}]},
        r"model\.stages\[0\]\.num_heads = 3: none of 2 options fits.*must divide embed_dim 16",
    ),
    "groups and tokens": (
        {"stages": [MHSA], "groups": "[3]"},
        r"model\.stages\[0\]\.groups = \[3\]: 16 tokens cannot be split into 3.*nearest: \[2\]",
    ),
    "no schedule fits": (
        {"stages": [MHSA], "groups": {"choice": ["[3]", "[5]"]}},
        r"model\.groups = '\[3\]': none of 2 options.*: 16 tokens cannot be split into 3",
    ),
    "brackets": ({"groups": "[1][1]"}, r"model\.groups = '\[1\]\[1\]': 2 brackets.*: \[1\]\)"),
    "groups as range": ({"groups": {"int": [1, 2]}}, r"model\.groups: searched by choice alone"),
    "unreadable stage groups": (
        {"groups": None, "stages": [CONV | {"groups": "[2"}], "reattention_blocks": 0},
        r"model\.groups",
    ),
    "endless number in groups": ({"groups": f"[{'9' * 5000}]"}, r"model\.groups = .*written like"),
    "endless schedule": ({"groups": "[1" + ",1" * 5000 + "]"}, r"at most 100 items"),
    "static keys": (
        {"stages": [MHSA | {"token_mixer": "ska"}], "groups": "[2]"},
        r"stages\[0\]\.groups = \[2\]: ska is bound to token positions.*nearest: \[1\]",
    ),
    "re-attention": ({"reattention_blocks": 1}, r"model\.reattention_blocks = 1: .*nearest: 0"),
    "gamma": ({"broad": {"gamma": 0.5}}, r"model\.broad\.gamma = 0\.5: .*nearest: 0"),
    "limits": ({"/limits": {"flops": {"max": 10}}}, r"limits\.flops\.max = 10\.0: no network"),
    "limits the wrong way round": (
        {"/limits": {"flops": {"min": 5.0e6, "max": 1.0e6}}},
        r"limits\.flops\.min = 5000000\.0: must not be above max 1000000\.0",
    ),
    "strides": ({"img_size": 7}, r"model\.img_size = 7: must be a multiple of 2.*nearest: 8"),
    "no pixel": ({"img_size": [8, 0]}, r"model\.img_size\[1\] = 0: .*nearest: 1"),
    "three sides": ({"img_size": [8, 8, 8]}, r"model\.img_size = \[8, 8, 8\]: .*at most 2"),
    "too many sizes": (
        {"img_size": {"int": [2, 64], "step": 2}},
        r"model\.img_size = \{int: \[2, 64\], step: 2\}: takes 8 values at most",
    ),
    "classes axis": (
        {"num_classes": {"choice": [10, 100]}},
        r"model\.num_classes = 100: digits has 10 classes \(nearest: 10\)",
    ),
    "one axis for all": ({"/model": {"choice": [1]}}, r"model = \{choice: \[1\]\}: must be a mapp"),
    "no model": ({"/model": None}, r"model: is null"),
    "no stages": ({"/model": {"img_size": 8}}, r"model\.stages: is required"),
    "a tie of different ranges": (
        {
            "drop_path_rate": {"float": [0.0, 0.5], "name": "t"},
            "stages": [CONV | {"mlp_ratio": {"float": [1.0, 2.0], "name": "t"}}],
        },
        r"model\.drop_path_rate\.name = 't': must offer what stages\[0\]\.mlp_ratio offers",
    ),
    "long name": ({"/name": "a" * 300}, r"name = .*at most 100 characters"),
    "escape in a value": ({"norm": "\x1b[31m"}, r"model\.norm = '\\x1b\[31m'"),
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_in_a_space_is_one_line(mistake: str, capsys: pytest.CaptureFixture[str]) -> None:
    changes, expected = MISTAKES[mistake]
    file = space_file(changes)
    line = complaint(capsys, "space", file)
    assert line.startswith(f"{file}: ")
    assert re.search(expected, line), line
    assert re.search(expected, complaint(capsys, "search", file, *SERIAL))


TEXTS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "must be a mapping"),
    "a list": (b"[1]", "must be a mapping"),
    "not UTF-8": (b"name: \xff\xfe", "is not a text file in UTF-8"),
    "python tag": (b"a: !!python/object/apply:os.system [touch pwned]", "line 1: not safe YAML"),
    "date tag": (b"a: !!timestamp 2026-01-01", "line 1: not safe YAML"),
    "set": (b"a: !!set {b}", "line 1: not safe YAML"),
    "bytes": (b"a: !!binary aGk=", "line 1: not safe YAML"),
    "list as key": (b"? [a, b]\n: 3", "line 1: .*a key is text, and this one is read as seq"),
    "truth value as key": (b"a: 1\nyes: 3", "line 2: .*read as bool; quote it"),
    "number as key": (b"model: {3: 4}", "line 1: .*read as int"),
    "null as key": (b"~: 3", "line 1: .*read as null"),
    "twice": (b"a: 1\na: 2", "line 2: .*the key 'a' stands twice"),
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
    "itself": (b"model: &m {stages: *m}", "its aliases expand"),
    "endless number": (b"a: " + b"9" * 5000, "cannot be read as int"),
    "NUL": (b"a: \x00", "not YAML"),
    "too large": (b"#" * (2 << 20), "larger than 1 MiB"),
}  # fmt: skip


@pytest.mark.parametrize("text", sorted(TEXTS))
@pytest.mark.parametrize("command", ["space", "describe"])
def test_text_that_is_no_file_of_ours(
    command: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    content, expected = TEXTS[text]
    Path("s.yaml").write_bytes(content)
    line = complaint(capsys, command, "s.yaml")
    assert re.match(rf"s\.yaml: .*{expected}", line), line


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n"), "\ufeff{}".format])
def test_windows_files_are_read(change: Any, capsys: pytest.CaptureFixture[str]) -> None:
    space_file({})
    Path("w.yaml").write_bytes(change(Path("s.yaml").read_text()).encode())
    out, _ = vitnas_says(capsys, "space", "w.yaml", code=0)
    assert "networks    1" in out


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "no such command": (("serch",), "No such command 'serch'"),
    "a file name beyond names": (
        ("search", *SERIAL, "--seed-configs", "x" * 5000),
        r"^x{500}\.{3}x+.*: file name too long$",
    ),
    "a seed beyond seeds": (("train", "sret_t", "--to", "x", "--seed", str(2**64)), "--seed"),
    "samples beyond reason": (("space", "--samples", str(10**30)), "--samples.*10000"),
    "seeds beyond reason": (("replay", "--seeds", str(10**30)), "--seeds.*10000"),
    "pixels beyond reason": (("graft", "vit_tiny", "--img-size", "1000000"), "--img-size.*16384"),
    "no such option": (("search", "--sede", "3"), "--sede.*--seed"),
    "no such space": (("space", "digit"), r"digit: no such file.*\(nearest: digits\)"),
    "no such file": (("describe", "nope.yaml"), "nope.yaml: no such file"),
    "a folder": (("space", "."), ".: is a directory"),
    "a name beyond names": (("space", "x" * 5000), "no such file"),
    "a NUL in a name": (("describe", "a\0b"), "embedded null byte"),
    "an endless file": (("describe", "/dev/zero"), "/dev/zero: larger than 1 MiB"),
    "trials": (("search", "--trials", "0"), r"--trials = 0: .*\(nearest: 1\)"),
    "seed": (("search", "--seed", "-1"), "--seed"),
    "sampler": (("search", "--sampler", "tp"), r"--sampler = 'tp': .*\(nearest: tpe\)"),
    "not a number": (("search", "--hours", "nan"), r"--hours = nan: should be a finite number"),
    "backend": (
        ("search", "--backend", "rays"),
        "--backend = 'rays': should be 'tune' or 'serial'",
    ),
    "pruner": (("search", "--pruner", "frnt"), r"--pruner = 'frnt': .*\(nearest: front\)"),
    "pruner of a replay": (("replay", "--pruner", "bth"), r"--pruner = 'bth': .*\(nearest: both\)"),
    "two pruners": (
        ("search", "--pruner", "front", "--no-prune"),
        "--no-prune means --pruner none, not front; drop one",
    ),
    "confidence": (("search", "--confidence", "95"), "--confidence.*0.999"),
    "schema": (("schema", "modell"), r"KIND = 'modell': .*\(nearest: model\)"),
    "cluster": (
        ("search", "--ray-address", "127.0.0.1:1", "--gpus-per-trial", "0"),
        "--ray-address 127.0.0.1:1: no Ray cluster answers",
    ),
    "address": (
        ("search", "--ray-address", "nobody", "--gpus-per-trial", "0"),
        "--ray-address nobody: .*an address is auto or host:port",
    ),
    "data": (("search", "hybrid_cifar", *SERIAL), "data/cifar-10.*: no such folder; cifar10: un"),
    "no run": (("report", "nope"), "nope: no study.db in it"),
    "no run to export": (("export", "nope", "--to", "x", "--knee"), "nope: no study.db in it"),
    "out is a file": (("search", *SERIAL, "--out", "file"), "file: is a file"),
    "out below a file": (("search", *SERIAL, "--out", "file/run"), "not a writable folder"),
    "out beyond names": (("search", *SERIAL, "--out", "y" * 300), "cannot be made .*too long"),
    "out where nothing can be": (("search", *SERIAL, "--out", "/proc/run"), "/proc/run: cannot be"),
    "out with other files": (
        ("search", *SERIAL, "--out", "."),
        r"\.: holds 'file' and no study.db, so it is not a run",
    ),
}


@pytest.mark.parametrize("mistake", sorted(COMMANDS))
def test_a_mistake_on_the_command_line_is_one_line(
    mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, expected = COMMANDS[mistake]
    Path("file").write_text("")
    line = complaint(capsys, *arguments)
    assert re.search(expected, line), line


def test_a_share_that_leaves_no_image(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"/proxy": {"train_fraction": 1.0e-9}})
    line = complaint(capsys, "search", file, *SERIAL, "--out", "run")
    assert re.match(r"s\.yaml: proxy\.train_fraction = 1e-09: leaves less than two of 1\d+", line)


def test_a_folder_without_permission(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so the system's answer is stood in for."""
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "not a writable folder" in complaint(capsys, "search", *SERIAL, "--out", "run")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has one")
def test_no_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    line = complaint(capsys, "search", "--gpus-per-trial", "0.5")
    assert line == "--gpus-per-trial 0.5: this machine has no CUDA device"


def test_a_folder_named_like_a_shipped_space_does_not_hide_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("digits").mkdir()
    out, _ = vitnas_says(capsys, "space", "digits", "--samples", "0", code=0)
    assert out.startswith("digits: ")


def test_help_when_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = vitnas_says(capsys)
    assert "Usage" in out + err
    assert not (out + err).startswith("vitnas: ")


VARIED: dict[str, dict[str, Any]] = {
    "whole stages": {"stages": {"choice": [[CONV], [CONV, CONV]]}, "groups": "[1]"},
    "stages and schedules": {
        "stages": {"choice": [[CONV], [CONV, CONV]]},
        "groups": {"choice": ["[1]", "[1][1]"]},
    },
    "one stage": {"stages": [{"choice": [CONV, MHSA]}]},
    "broad as a whole": {
        "stages": [MHSA],
        "broad": {"choice": [{"gamma": 0.0}, {"gamma": {"choice": [0.2, 0.4]}}]},
    },
    "class token": {"stages": [MHSA], "class_token": {"choice": [True, False]}},
    "tied stages": {
        "groups": "[1][1]",
        "stages": [
            {"choice": [CONV, MHSA | {"depth": {"int": [1, 2]}}], "name": "s"},
            {"choice": [CONV, MHSA | {"depth": {"int": [1, 2]}}], "name": "s"},
        ],
    },
    "steps that miss the end": {"drop_path_rate": {"float": [0.0, 0.5], "step": 0.3}},
}


@pytest.mark.parametrize("kind", sorted(VARIED))
def test_what_may_be_searched(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = vitnas_says(capsys, "space", space_file(VARIED[kind]), "--json", code=0)
    expected = {"whole stages": 1, "broad as a whole": 3, "tied stages": 5}.get(kind, 2)
    assert json.loads(out)["num_networks"] == expected


def test_a_very_long_range_is_surveyed(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"stages": [CONV | {"embed_dim": {"int": [1, 1_000_000]}}]})
    out, _ = vitnas_says(capsys, "space", file, "--json", code=0)
    assert json.loads(out)["num_networks"] == 1_000_000


def test_a_float_axis_cannot_be_counted(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"drop_path_rate": {"float": [0.0, 0.5]}})
    out, _ = vitnas_says(capsys, "space", file, code=0)
    assert "uncountable (a float axis without step)" in out
    out, _ = vitnas_says(capsys, "space", file, "--json", code=0)
    assert json.loads(out, parse_constant=pytest.fail)["num_networks"] is None
