"""timm's own model tests, from its source distribution, on one network of each kind.

All of our networks: `python -m tests.timm_suite`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.timm_suite.__main__ import run_suite
from tests.timm_suite.fetch import NotFetchedError, fetch_tests

MODELS = ["sret_t", "bvit_5m", "skaformer_s18"]


@pytest.mark.nightly
def test_timms_tests_pass_on_our_models(tmp_path: Path) -> None:
    try:
        root = fetch_tests(tmp_path)
    except NotFetchedError as error:
        pytest.skip(str(error))
    counts = run_suite(root, ",".join(MODELS))
    assert not counts["failed"]
    assert not counts["skipped"]
    passed = {name: results["passed"] for name, results in counts["tests"].items()}
    of_both = passed.pop("test_model_default_cfgs") + passed.pop("test_model_default_cfgs_non_std")
    assert of_both == len(MODELS)
    assert passed.pop("test_model_forward_features") == 2  # of networks that give pictures
    assert set(passed.values()) == {len(MODELS)}
    assert len(passed) >= 7
