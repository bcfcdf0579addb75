"""The permutations of group attention."""

from __future__ import annotations

import pytest
import torch

from vitnas.nn.layers.shuffle import TokenShuffle

CPU = torch.device("cpu")


def test_inverse_undoes_the_order() -> None:
    shuffle = TokenShuffle(24, block=3, pass_index=1)
    for training in (False, True):
        order, inverse = shuffle.train(training)(CPU)
        assert torch.equal(order[inverse], torch.arange(24))
        assert not torch.equal(order, torch.arange(24))


def test_fixed_order_is_a_function_of_block_pass_and_tokens() -> None:
    orders = {key: TokenShuffle(64, *key).order for key in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0))}
    for key, order in orders.items():
        assert torch.equal(TokenShuffle(64, *key).order, order)
    assert len({tuple(order.tolist()) for order in orders.values()}) == len(orders)


def test_eval_neither_reads_nor_moves_the_global_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    shuffle = TokenShuffle(64, 0, 0).eval()
    before = torch.get_rng_state()
    monkeypatch.setattr(torch, "randperm", None)  # calling it would fail
    order, _ = shuffle(CPU)
    assert torch.equal(order, shuffle.order)
    monkeypatch.undo()
    TokenShuffle(64, 5, 0)
    assert torch.equal(torch.get_rng_state(), before)


def test_is_not_saved() -> None:
    assert not TokenShuffle(64, 0, 0).state_dict()


def test_comes_back_after_a_build_on_meta() -> None:
    with torch.device("meta"):
        shuffle = TokenShuffle(64, 2, 1)
    assert shuffle.order.is_meta
    shuffle.to_empty(device="cpu").init_non_persistent_buffers()
    fresh = TokenShuffle(64, 2, 1)
    assert torch.equal(shuffle.order, fresh.order)
    assert torch.equal(shuffle.inverse, fresh.inverse)
