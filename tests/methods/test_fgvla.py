"""FGVLA's parts: nouns and their tokens, the fine loss against a loop, and rows whose products are its similarity."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from evidex.encoders.towers import TowerEncoder
from evidex.methods.fgvla import METHOD, FgvlaEncoder, fine_loss
from evidex.methods.nouns import NounTokens, noun_spans
from tests.methods.conftest import TEXTS


@pytest.mark.parametrize(
    ("text", "nouns"),
    [
        ("many planes are parked near a large terminal .", ["planes", "terminal"]),
        ("a green forest", ["forest"]),
        ("it is large", ["it"]),  # none: its first word
        (".", []),
    ],
)
def test_nouns_are_what_is_left(text: str, nouns: list[str]) -> None:
    assert [text[start:end] for start, end in noun_spans(text)] == nouns


def test_the_tokens_of_nouns_are_marked(towers: TowerEncoder) -> None:
    tokens = towers.tokenize(["many planes near a terminal ."])["input_ids"]
    mask = NounTokens(towers).mask(["many planes near a terminal ."], tokens.shape[1])[0]
    marked = "".join(towers.tokenizer.vocabulary[i].removeprefix("##") for i in tokens[0, mask.bool()].tolist())
    assert marked == "planesterminal"


def _naive(places: torch.Tensor, words: torch.Tensor, nouns: torch.Tensor) -> float:
    contrasts, masks = [], []
    for b in range(len(places)):
        table = [[float(w @ p) for p in places[b]] for w, used in zip(words[b], nouns[b], strict=True) if used]
        for row in table:
            total = sum(math.exp(value / 0.07) for value in row)
            contrasts.append(-sum(math.log(math.exp(v / 0.07) / total) for v in sorted(row)[-5:]))
        pooled = [sum(column) / len(table) for column in zip(*table, strict=True)]
        least = sorted(pooled)[-5]
        for value in pooled:
            chance = 1 / (1 + math.exp(-value / 0.07))
            masks.append(-math.log(chance if value >= least else 1 - chance))
    return 0.6 * sum(contrasts) / len(contrasts) + 0.4 * sum(masks) / len(masks)


def test_the_fine_loss_is_that_of_a_naive_loop() -> None:
    torch.manual_seed(0)
    places = normalize(torch.randn(3, 9, 4, dtype=torch.float64), dim=-1)
    words = normalize(torch.randn(3, 6, 4, dtype=torch.float64), dim=-1)
    nouns = torch.tensor([[0, 1, 1, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]], dtype=torch.bool)
    assert fine_loss(places, words, nouns).item() == pytest.approx(_naive(places, words, nouns))


@torch.no_grad()
def test_rows_give_nine_tenths_of_the_whole_and_a_tenth_of_the_parts(
    towers: TowerEncoder, pixels: torch.Tensor
) -> None:
    encoder = METHOD.wrap(towers, [])
    assert isinstance(encoder, FgvlaEncoder)
    encoder.eval()
    for parameter in encoder.head.parameters():
        parameter.add_(0.3 * torch.randn_like(parameter))
    tokens = encoder.tokenize(TEXTS)
    images, texts = encoder.image_features(pixels), encoder.text_features(tokens)
    torch.testing.assert_close(images.norm(dim=1), torch.ones(len(images)))
    torch.testing.assert_close(texts.norm(dim=1), torch.ones(len(texts)))
    (whole_image, places), (whole_text, words) = encoder._image(pixels), encoder._text(tokens)
    for i in range(len(images)):
        for j in range(len(texts)):
            pairs = words.rows[j][words.mask[j]] @ places.rows[i].T
            expected = 0.9 * whole_image[i] @ whole_text[j] + 0.1 * pairs.mean()
            assert (images[i] @ texts[j]).item() == pytest.approx(expected.item(), abs=1e-5)


@torch.no_grad()
def test_padding_of_sentences_changes_nothing(towers: TowerEncoder) -> None:
    encoder = METHOD.wrap(towers, []).eval()
    for parameter in encoder.parameters():
        parameter.add_(0.05 * torch.randn_like(parameter))
    together = encoder.text_features(encoder.tokenize(TEXTS))
    alone = torch.cat([encoder.text_features(encoder.tokenize([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-4)
