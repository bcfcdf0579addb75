"""One line for every mistake, with the place, the rule and the nearest valid value."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import SERIAL, complaint, space_file
from tests.config.trees import space_tree
from vitnas.config.files import dump_yaml

FILES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a space": (
        ("space", "x.yaml"),
        "name: x\nmodel: {img_sise: 8}",
        r"x\.yaml: model\.img_sise = 8: unknown key \(nearest: img_size\)",
    ),
    "a space to search": (
        ("search", "x.yaml", *SERIAL),
        "name: x\nlimts: {}",
        r"x\.yaml: limts = \{\}: unknown key \(nearest: limits\)",
    ),
    **{
        f"a network to train first, by {verb}": (
            (verb, "x.yaml", *options),
            dump_yaml(space_tree({"/seed_configs": [{"stages": [{"embed_dim": "wide"}]}]})),
            r"x\.yaml: seed_configs\[0\]\.stages\[0\]\.embed_dim = 'wide': should be a whole",
        )
        for verb, options in (("space", ()), ("search", SERIAL))
    },
    "a model": (("describe", "x.yaml"), "img_sise: 8", r"x\.yaml: img_sise = 8: unknown key"),
    "a recipe": (
        ("train", "sret_t", "--to", "net", "--recipe", "x.yaml"),
        "epoch: 3",
        r"x\.yaml: epoch = 3: unknown key \(nearest: epochs\)",
    ),
    "limits that nothing meets": (
        ("space", "x.yaml"),
        dump_yaml(space_tree({"/limits": {"flops": {"max": 10}}})),
        r"x\.yaml: limits\.flops\.max = 10\.0: no network",
    ),
    "a checkpoint": (
        ("convert", "x.yaml", "--from", "sret", "--to", "net"),
        "no weights",
        r"x\.yaml: ",
    ),
    "a study": (("report", "."), "", r"\.: no study\.db in it"),
    "no text": (("describe", "x.yaml"), "a: !!python/name:os.system", r"x\.yaml: line 1: not safe"),
}


@pytest.mark.parametrize("kind", sorted(FILES))
def test_a_mistake_in_a_file_is_one_line(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One of each kind of file: what else can be wrong is in the tests of their readers."""
    arguments, text, expected = FILES[kind]
    Path("x.yaml").write_text(text)
    line = complaint(capsys, *arguments)
    assert re.match(expected, line), line


COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    "no such command": (("serch",), "No such command 'serch'"),
    "a file name beyond names": (
        ("search", *SERIAL, "--seed-configs", "x" * 5000),
        r"^--seed-configs = 'x+\.{3}: no such file, run or model of the zoo",
    ),
    "a seed beyond seeds": (("train", "sret_t", "--to", "x", "--seed", str(2**64)), "--seed"),
    "samples beyond reason": (("space", "--samples", str(10**30)), "--samples.*10000"),
    "seeds beyond reason": (("replay", "--seeds", str(10**30)), "--seeds.*10000"),
    "pixels beyond reason": (("graft", "vit_tiny", "--img-size", "1000000"), "--img-size.*16384"),
    "no such mixer": (
        ("graft", "vit_tiny_patch16_224", "--mixer", "sak", "--to", "x"),
        "nearest: ska",
    ),
    "a field that the mixer does not read": (
        ("graft", "vit_tiny_patch16_224", "--mixer", "ska", "--key-kernel", "5"),
        "key_kernel: .*ska does not read it",
    ),
    "files of a graft without a folder": (
        ("graft", "vit_tiny_patch16_224", "--mixer", "ska", "--formats", "onnx"),
        "--formats = 'onnx': needs --to, a folder to write",
    ),
    "a linear temperature of a graft": (
        ("graft", "vit_tiny_patch16_224", "--mixer", "ska", "--temperature", "linear"),
        "temperature.kind = 'linear'.*nearest: learnable",
    ),
    "windows and a class token": (
        ("graft", "vit_tiny_patch16_224", "--mixer", "ska", "--windows", "2"),
        "windows = 2: a class token is in no window",
    ),
    "no such option": (("search", "--sede", "3"), "--sede.*--seed"),
    "no such space": (("space", "digit"), r"digit: no such file.*\(nearest: digits\)"),
    "no data": (("train", "sret_t", "--to", "x", "--data", ""), "what follows --data is empty"),
    "no such file": (("describe", "nope.yaml"), "nope.yaml: no such file"),
    "a folder": (("space", "."), ".: is a folder, and a space is a file"),
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
    "data": (("search", "hybrid_cifar", *SERIAL), "data/cifar-10.*: no such folder in .*; cifar10"),
    "no run": (("report", "nope"), r"nope: no such folder, so no study\.db in it$"),
    "no run to export": (("export", "nope", "--to", "x", "--knee"), "nope: no such folder"),
    "out is a file": (("search", *SERIAL, "--out", "file"), "file: is a file"),
    "out below a file": (("search", *SERIAL, "--out", "file/run"), "not a writable folder"),
    "out beyond names": (("search", *SERIAL, "--out", "y" * 300), "cannot be made .*too long"),
    "out where nothing can be": (("search", *SERIAL, "--out", "/proc/run"), "/proc/run: cannot be"),
    "out with other files": (
        ("search", *SERIAL, "--out", "."),
        r"\.: holds 'file' and no study.db, so it is of something else",
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
