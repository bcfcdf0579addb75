"""What a session writes down of itself."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

import vitnas.environment
from vitnas.environment import command_line, cpu_model, git_revision, hardware, session_facts
from vitnas.sessions import Session


def test_the_facts_of_a_session_are_plain_and_a_session_reads_them() -> None:
    facts = session_facts(workers=2)
    session = Session.model_validate(json.loads(json.dumps(facts)))
    assert session.workers == 2
    assert {"python", "vitnas", "torch"} <= set(session.versions)
    assert session.told() == facts


def test_the_command_can_be_pasted_into_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/vitnas", "search", "a b", "$HOME"])
    assert shlex.split(command_line()) == ["vitnas", "search", "a b", "$HOME"]
    monkeypatch.setattr("sys.argv", ["vitnas", "search", "a\udcff"])
    assert command_line() == "vitnas search 'a\\udcff'", "JSON in UTF-8 can hold it"


def test_hardware_is_told() -> None:
    told = hardware()
    assert told["cores"] >= 1
    assert told["memory_gb"] > 0
    assert told["cpu"] == cpu_model() != ""


def test_without_git_there_is_no_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **options: object) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    assert vitnas.environment.git_revision is git_revision
    assert git_revision() is None
