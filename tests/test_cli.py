"""The command line as a newcomer meets it: one line for every mistake, and the whole road."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import vitnas
from tests.engine.conftest import TREE
from vitnas.cli import main
from vitnas.engine.study import read_run
from vitnas.errors import ConfigError, DataError
from vitnas.records import Run

SERIAL = ("--backend", "serial", "--trials", "3", "--gpus-per-trial", "0")
MHSA = {"token_mixer": "mhsa", "embed_dim": 32, "head_dim": 16}
CONV = {"token_mixer": "dwconv", "embed_dim": 16}
FIXED = TREE["model"] | {"groups": "[1]", "stages": [CONV]}
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in an empty folder, so that what it leaves there is seen."""
    monkeypatch.chdir(tmp_path)


def vitnas_says(
    capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2
) -> tuple[str, str]:
    """What the command prints to stdout and stderr; its exit code must be `code`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert ended.value.code == code, said.err
    return said.out, said.err


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a mistake is answered with; nothing may have been written."""
    before = sorted(Path.cwd().rglob("*"))
    out, err = vitnas_says(capsys, *arguments)
    assert not out
    assert err.startswith("vitnas: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.strip().isprintable()
    assert sorted(Path.cwd().rglob("*")) == before
    return err.removeprefix("vitnas: ").rstrip("\n")


def space_file(changes: Mapping[str, Any], name: str = "s.yaml") -> str:
    """A space file whose model is `FIXED` with `changes`; a key with a point is a top-level one."""
    tree = copy.deepcopy(TREE)
    tree["model"] = {**FIXED, **{k: v for k, v in changes.items() if "/" not in k}}
    tree |= {key.strip("/"): value for key, value in changes.items() if "/" in key}
    Path(name).write_text(yaml.safe_dump(tree, sort_keys=False))
    return name


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
        r"model\.stages\[0\]\.num_heads = 3: none of 2 options fits.* 3 does not divide embed_dim",
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
        "its aliases expand to more than 100,000 values",
    ),
    "itself": (b"model: &m {stages: *m}", "its aliases expand"),
    "endless number": (b"a: " + b"9" * 5000, "not YAML"),
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
    "no such option": (("search", "--sede", "3"), "--sede.*--seed"),
    "no such space": (("space", "digit"), r"digit: no such file.*\(nearest: digits\)"),
    "no such file": (("describe", "nope.yaml"), "nope.yaml: no such file"),
    "a folder": (("space", "."), ".: is a directory"),
    "a name beyond names": (("space", "x" * 5000), "no such file"),
    "a NUL in a name": (("describe", "a\0b"), "embedded null byte"),
    "an endless file": (("describe", "/dev/zero"), "/dev/zero: larger than 1 MiB"),
    "trials": (("search", "--trials", "0"), "--trials"),
    "seed": (("search", "--seed", "-1"), "--seed"),
    "sampler": (("search", "--sampler", "tp"), r"--sampler = 'tp': .*\(nearest: tpe\)"),
    "backend": (("search", "--backend", "rays"), "--backend = 'rays': must be tune or serial"),
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


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one real search."""
    home = tmp_path_factory.mktemp("road")
    (home / "tiny.yaml").write_text(f"# mine\n{yaml.safe_dump(TREE, sort_keys=False)}")
    with pytest.raises(SystemExit) as ended:
        main(["search", str(home / "tiny.yaml"), *SERIAL, "--out", str(home / "run")])
    assert ended.value.code == 0
    return home / "run"


@pytest.fixture
def run(road: Path) -> Run:
    return read_run(road)


PROMISED = (
    *("study.db", "space.yaml", "environment.json"),
    *("trials.csv", "front.csv", "front.png", "report.md", "report.html"),
)


def test_a_search_leaves_every_file_promised(road: Path, run: Run) -> None:
    for name in PROMISED:
        assert (road / name).stat().st_size > 100, name
    assert (road / "space.yaml").read_text().startswith("# mine\n")
    assert len(run.complete) == 3
    for trial in run.complete:
        config = vitnas.load_config(road / "configs" / f"{trial.number}.yaml")
        assert config.key == trial.key
    assert not list(road.glob("*.tmp"))


def test_report_rebuilds_and_imports_neither_torch_nor_ray(road: Path) -> None:
    for name in PROMISED[3:]:
        (road / name).unlink()
    code = (
        "import sys; from vitnas.cli import main\n"
        f"try: main(['report', {str(road)!r}])\n"
        "finally: print(*{'torch', 'ray'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (0, "")
    assert "report.html" in done.stdout
    assert all((road / name).is_file() for name in PROMISED)


def test_an_exported_network_is_the_one_that_was_searched(
    road: Path, run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from vitnas.training.weights import load_weights

    assert run.knee is not None
    out, _ = vitnas_says(capsys, "export", str(road), "--knee", "--to", "mine", code=0)
    assert "vitnas.load('mine')" in out
    assert {path.name for path in Path("mine").iterdir()} == {
        "config.yaml", "model.safetensors", "README.md"
    }  # fmt: skip
    by_hand = vitnas.build_model(vitnas.load_config("mine/config.yaml"))
    load_weights(by_hand, road / "weights" / f"{run.knee.number}.safetensors")
    images = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(vitnas.load("mine")(images), by_hand.eval()(images))


def test_what_cannot_be_exported(road: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("full").mkdir()
    Path("full/x").write_text("")
    expected = {
        (): "choose a network by one of",
        ("--trial", "0", "--knee"): "choose a network by one of",
        ("--trial", "999"): "there is no trial 999",
        ("--under", "1"): "nothing on the front has 1 FLOPs or less; the cheapest is",
        ("--under", "abc"): "--under 'abc': FLOPs are written like",
        ("--under", "nan"): "--under 'nan'",
        ("--knee", "--to", "full"): "full: is not empty",
        ("--knee", "--to", "full/x"): "full/x: is a file",
        ("--knee", "--to", "z" * 300): "cannot be used: file name too long",
        ("--knee", "--to", "/proc/x"): "/proc/x: cannot be written",
    }
    for arguments, words in expected.items():
        assert words in complaint(capsys, "export", str(road), "--to", "new", *arguments)


def test_a_damaged_export_is_one_line(road: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vitnas_says(capsys, "export", str(road), "--knee", "--to", "mine", code=0)
    weights = Path("mine/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(DataError, match=r"model\.safetensors: not a safetensors"):
        vitnas.load("mine")
    Path("mine/config.yaml").write_text("stages: 3")
    with pytest.raises(ConfigError, match=r"config\.yaml: stages = 3"):
        vitnas.load("mine")
    with pytest.raises(ConfigError, match="no such file"):
        vitnas.load("nowhere")


def test_another_run_is_not_continued(road: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny = str(road.parent / "tiny.yaml")
    line = complaint(capsys, "search", tiny, *SERIAL, "--out", str(road), "--seed", "1")
    assert "is a run of another seed: 0 -> 1; use another --out" in line
    other = space_file({})
    line = complaint(capsys, "search", other, *SERIAL, "--out", str(road))
    assert re.search(r"is a run of another space: model\.groups: .* -> '\[1\]';", line)


def test_a_finished_run_goes_on_with_more_trials(
    road: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    import shutil

    shutil.copytree(road, "run")
    tiny, more = str(road.parent / "tiny.yaml"), [*SERIAL[:-3], "4", *SERIAL[-2:]]
    out, _ = vitnas_says(capsys, "search", tiny, *more, "--out", "run", code=0)
    assert "[4/4]" in out
    grown = read_run("run")
    assert grown.complete[:3] == tuple(run.complete)
    assert len(grown.complete) == 4
    vitnas_says(capsys, "search", tiny, *SERIAL, "--out", "run", code=0)
    assert len(read_run("run").complete) == 4


DAMAGE: dict[str, Any] = {
    "garbage": lambda content: b"hello world" * 500,
    "half": lambda content: content[: len(content) // 2],
    "an overwritten page": lambda content: content[:4096] + bytes(4096) + content[8192:],
    "not JSON": lambda content: content.replace(b'{"config":', b'["config":'),
}


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_study(road: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run").mkdir()
    Path("run/study.db").write_bytes(DAMAGE[damage]((road / "study.db").read_bytes()))
    assert "run/study.db: cannot be" in complaint(capsys, "report", "run")
    tiny = str(road.parent / "tiny.yaml")
    _, err = vitnas_says(capsys, "search", tiny, *SERIAL, "--out", "run")
    assert err.startswith("vitnas: run/study.db: cannot be ")
    assert err.count("\n") == 1


def test_a_space_of_two_networks_ends_early(capsys: pytest.CaptureFixture[str]) -> None:
    file = space_file({"stages": [CONV | {"mlp_ratio": {"choice": [1.0, 2.0]}}]})
    _, err = vitnas_says(capsys, "search", file, *SERIAL, "--out", "run", code=0)
    assert err == "vitnas: 2 of 3 trials: the space has nothing new to show\n"


def test_the_image_size_is_searched(capsys: pytest.CaptureFixture[str]) -> None:
    """Every candidate is trained, scored and exported at its own size."""
    file = space_file({"img_size": {"choice": [8, [12, 8]]}})
    arguments = ("search", file, *SERIAL[:-3], "2", *SERIAL[-2:], "--out", "run")
    vitnas_says(capsys, *arguments, code=0)
    run = read_run("run")
    sizes = {str(trial.config["img_size"]): trial for trial in run.complete}
    assert sorted(sizes) == ["8", "[12, 8]"]
    assert all(trial.test_top1 is not None for trial in run.front)
    assert "mean" not in run.environment["data"]
    chosen = str(sizes["[12, 8]"].number)
    vitnas_says(capsys, "export", "run", "--trial", chosen, "--to", "net", code=0)
    assert vitnas.load("net")(torch.zeros(1, 1, 12, 8)).shape == (1, 10)


def test_why_everything_failed_is_said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from vitnas.training.proxy import ProxyTraining

    def broken(self: ProxyTraining) -> object:
        raise ValueError("no such thing")

    monkeypatch.setattr(ProxyTraining, "__iter__", broken)
    out, _ = vitnas_says(capsys, "search", space_file({}), *SERIAL, "--out", "run", code=0)
    assert "1 of 1 trainings failed" in out
    assert "the first, trial 0: ValueError: no such thing" in out


def test_python_search_py_is_the_command() -> None:
    script = Path(__file__).resolve().parents[1] / "search.py"
    done = subprocess.run(
        [sys.executable, str(script), "nowhere.yaml"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "vitnas: nowhere.yaml: no such file or directory\n"


@pytest.mark.parametrize(
    ("command", "where", "said"),
    [
        ("search", "vitnas.api.load_space", "interrupted; the same command goes on"),
        ("replay", "vitnas.engine.tables.find_table", "interrupted\n"),
    ],
)
def test_ctrl_c_promises_nothing_that_is_not_so(
    command: str,
    where: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupt)
    with pytest.raises(SystemExit) as done:
        main([command])
    assert done.value.code == 130
    assert capsys.readouterr().err.startswith(f"vitnas: {said}")
