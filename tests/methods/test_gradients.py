"""Feature caching leaves every method the gradient of one plain step: its rows hold all that its loss needs."""

import pytest
import torch
from torch import nn

from evidex.config import Config, LossConfig, MethodConfig, TrainConfig
from evidex.encoders.towers import TowerEncoder
from evidex.methods.protocol import implementation
from evidex.methods.registry import ON_CLIP_ALONE, TRAINABLE
from evidex.training.step import Pairs, compute_gradients
from tests.methods.conftest import TEXTS

RANDOM = {"pe_rsitr"}  # drops tokens in every run, by chunk


@pytest.mark.parametrize("name", [name for name in TRAINABLE if name not in (*RANDOM, *ON_CLIP_ALONE)])
def test_chunks_do_not_change_the_gradient(name: str, towers: TowerEncoder, pixels: torch.Tensor) -> None:
    torch.manual_seed(0)
    method = implementation(name)
    captions = [[text, text] for text in TEXTS]
    encoder = method.wrap(towers, captions).eval()  # batch statistics and dropped places would depend on the chunks
    facts = method.facts(encoder, captions)
    graphs = torch.rand(len(pixels), 2, 20, 20) if encoder.object_graphs else None
    pairs = Pairs(pixels, encoder.tokenize(TEXTS), None, None, torch.arange(len(TEXTS)), facts=facts, graphs=graphs)
    found = []
    for chunk in (0, 2):
        encoder.zero_grad(set_to_none=True)
        config = Config(
            method=MethodConfig(name=name),  # type: ignore[arg-type]
            loss=LossConfig(mask_equal_captions=False),
            train=TrainConfig(chunk_size=chunk),
        )
        compute_gradients(encoder, nn.Parameter(torch.tensor(2.0)), pairs, config, epoch=12.0, seed=5)
        found.append({key: p.grad.clone() for key, p in encoder.named_parameters() if p.grad is not None})
    whole, chunked = found
    assert whole.keys() == chunked.keys()
    assert any(key.startswith("head") or key.startswith("image_head") for key in whole)
    for key, gradient in whole.items():
        torch.testing.assert_close(chunked[key], gradient, rtol=5e-3, atol=1e-5, msg=key)
