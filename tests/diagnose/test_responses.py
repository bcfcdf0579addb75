"""Response maps: one value for each place, prefix tokens left out."""

from __future__ import annotations

import pytest
import torch

from tests.diagnose.networks import layer
from vitnas.diagnose.responses import ResponseMaps, response

IMAGE = torch.zeros(3, 8, 12, dtype=torch.uint8)


def test_the_response_is_a_root_mean_square() -> None:
    assert response(torch.tensor([[3.0, -3.0], [0.0, 0.0]])).tolist() == [3.0, 0.0]


def test_prefix_tokens_are_left_out_and_places_keep_their_order() -> None:
    observer = ResponseMaps([layer(0, tokens=7, prefix=1)], IMAGE)
    tokens = torch.arange(7.0)[None, :, None].expand(2, 7, 4)
    observer.see_features(layer(0, tokens=7, prefix=1), tokens)
    finding = observer.finding()
    (found,) = finding.numbers["layers"]
    assert found["response"] == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert found["mean"] == pytest.approx(3.5)
    assert found["contrast"] == pytest.approx(torch.arange(1.0, 7).std(correction=0) / 3.5)
    assert finding.figure is not None


def test_tokens_without_a_grid_have_no_picture() -> None:
    observer = ResponseMaps([layer(0, grid=None)], IMAGE)
    observer.see_features(layer(0, grid=None), torch.ones(1, 6, 4))
    assert observer.finding().figure is None
