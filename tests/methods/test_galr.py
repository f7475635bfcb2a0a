"""GaLR's graph, fusion and second ranking against loops over their definitions, and what it needs of a dataset."""

import dataclasses
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from evidex.config import Config, DataConfig, EncoderConfig, LossConfig, MethodConfig, TrainConfig
from evidex.data.datasets import load_dataset
from evidex.data.object_graphs import graphs_of
from evidex.encoders.model import Model, load_model
from evidex.encoders.towers import TowerEncoder
from evidex.errors import DataError, InputError, ModelError
from evidex.evaluation.deferral import Refinements
from evidex.evaluation.protocol import evaluate
from evidex.evaluation.recall import recall
from evidex.evaluation.study.measure import measure
from evidex.losses.total import Features
from evidex.methods.galr import METHOD, DynamicFusion, GalrEncoder, ObjectGraph
from evidex.methods.multivariate_rerank import multivariate_rerank
from evidex.methods.protocol import MethodLesson
from evidex.retrieval.gallery import Gallery
from evidex.training.loop import train


@pytest.fixture
def encoder(towers: TowerEncoder) -> GalrEncoder:
    found = METHOD.wrap(towers, [])
    assert isinstance(found, GalrEncoder)
    return found.eval()


def test_objects_pass_on_what_they_are_along_their_links() -> None:
    torch.manual_seed(0)
    module = ObjectGraph(6).double()
    graphs = torch.rand(2, 2, 20, 20, dtype=torch.float64)
    with torch.no_grad():
        found = module(graphs).double()
        for each, (nodes, links) in zip(found, graphs, strict=True):
            rows = [list(map(float, node)) for node in nodes]
            for layer in module.layers:
                gathered = [
                    [sum(float(links[i, j]) * rows[j][k] for j in range(20)) for k in range(len(rows[0]))]
                    for i in range(20)
                ]
                assert isinstance(layer, torch.nn.Linear)
                weight = layer.weight.tolist()
                rows = [
                    [max(sum(w * x for w, x in zip(line, row, strict=True)), 0.0) for line in weight]
                    for row in gathered
                ]
            assert [len(rows), len(rows[0])] == [20, 20]
            out = module.out(torch.tensor([x for row in rows for x in row], dtype=torch.float64))
            torch.testing.assert_close(each, out / out.norm(), atol=1e-6, rtol=1e-5)


def _attention(state: dict[str, torch.Tensor], name: str, asked: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Attention of several heads over a sequence, here of one token, whatever queries and keys are."""
    dim = len(token)
    torch.manual_seed(dim)
    key, query = torch.randn(2, dim, dim, dtype=token.dtype)
    values = (state[f"{name}.value.weight"] @ token + state[f"{name}.value.bias"]).reshape(8, -1)
    heads = []
    for head, (q, k) in enumerate(zip((query @ asked).reshape(8, -1), (key @ token).reshape(8, -1), strict=True)):
        shares = torch.softmax(torch.stack([q @ k / math.sqrt(len(q))]), 0)
        heads.append(shares[0] * values[head])
    return state[f"{name}.merge.weight"] @ torch.cat(heads) + state[f"{name}.merge.bias"]


def _normed(state: dict[str, torch.Tensor], name: str, x: torch.Tensor) -> torch.Tensor:
    spread = math.sqrt(float(((x - x.mean()) ** 2).mean()) + 1e-6)
    return (x - x.mean()) / spread * state[f"{name}.weight"] + state[f"{name}.bias"]


def _transformed(state: dict[str, torch.Tensor], name: str, x: torch.Tensor, *guide: torch.Tensor) -> torch.Tensor:
    x = _normed(state, f"{name}.norms.0", x + _attention(state, f"{name}.attended.0", x, x))
    for other in guide:
        x = _normed(state, f"{name}.norms.1", x + _attention(state, f"{name}.attended.1", x, other))
    hidden = (state[f"{name}.wide.weight"] @ x + state[f"{name}.wide.bias"]).clamp(min=0)
    last = f"{name}.norms.{1 + len(guide)}"
    return _normed(state, last, x + state[f"{name}.narrow.weight"] @ hidden + state[f"{name}.narrow.bias"])


def test_the_whole_and_the_objects_correct_each_other() -> None:
    torch.manual_seed(0)
    module = DynamicFusion(16).double().eval()
    whole, objects = torch.randn(2, 3, 16, dtype=torch.float64)
    with torch.no_grad():
        found = module(whole, objects)
        state = module.state_dict()
        for each, g, o in zip(found, whole, objects, strict=True):
            own, of_objects = _transformed(state, "own_whole", g), _transformed(state, "own_objects", o)
            local = _transformed(state, "guided_objects", of_objects, own)
            overall = _transformed(state, "guided_whole", own, local)
            gated, added = overall / (1 + torch.exp(-local)), overall + local
            hidden = torch.sigmoid(state["weigh.weight"] @ (gated + added) + state["weigh.bias"])
            first, second = torch.softmax(state["weights.weight"] @ hidden + state["weights.bias"], 0)
            torch.testing.assert_close(each, first * gated + second * added)


def test_the_second_ranking_is_that_of_a_loop_over_its_definition() -> None:
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.05, 1.0, size=(7, 43))
    found = multivariate_rerank(scores)
    for i in range(7):
        order = sorted(range(43), key=lambda j: -scores[i, j])
        candidates, rest = order[:30], order[30:]
        finds = {j: sorted(range(7), key=lambda q: -scores[q, j]).index(i) for j in candidates}
        by_turn = sorted(candidates, key=lambda j: (finds[j], candidates.index(j)))
        for place, j in enumerate(candidates):
            expected = 0.3 * scores[i, j] / sum(scores[q, j] for q in range(7))
            expected += math.exp(-0.05 * (place + 1)) + 1.1 * math.exp(-0.05 * (by_turn.index(j) + 1))
            assert found[i, j] == pytest.approx(expected)
        assert (found[i, rest] == 0).all()


def test_the_second_ranking_takes_few_answers_and_columns_without_a_sum() -> None:
    found = multivariate_rerank(np.array([[0.5, 0.2], [-0.5, 0.3]], np.float32))
    assert np.isfinite(found).all()
    assert (found > 0).all()


def test_an_answer_that_asks_for_the_query_in_turn_rises() -> None:
    """The first answer of query 0 is liked better by every other query, its second by none."""
    scores = np.full((12, 12), 0.1)
    scores[:, 0], scores[0, 0], scores[0, 1] = 0.9, 0.8, 0.79
    assert multivariate_rerank(scores)[0].argmax() == 1


def test_what_is_seen_depends_on_the_objects(encoder: GalrEncoder, pixels: torch.Tensor, archive: Path) -> None:
    graphs = torch.from_numpy(graphs_of(load_dataset(archive, "train").records[: len(pixels)]))
    with torch.no_grad():
        with_objects, without = encoder.image_features_with(pixels, graphs), encoder.image_features(pixels)
        none = encoder.image_features_with(pixels, torch.zeros_like(graphs))
    torch.testing.assert_close(with_objects.norm(dim=1), torch.ones(len(pixels)))
    torch.testing.assert_close(without, none)
    assert ((with_objects - without).abs().amax(1) > 1e-4).any()


def test_the_loss_is_that_of_all_negatives(towers: TowerEncoder) -> None:
    torch.manual_seed(0)
    image, text = (normalize(torch.randn(5, 8), dim=1) for _ in range(2))
    lesson = MethodLesson(LossConfig(mask_equal_captions=False), 0.0, torch.tensor(1.0), towers)
    s = (image @ text.T).tolist()
    hinges = [max(0.2 + s[i][j] - s[i][i], 0) + max(0.2 + s[j][i] - s[i][i], 0) for i in range(5) for j in range(5)]
    expected = (sum(hinges) - 5 * 0.4) / 5
    assert float(METHOD.loss(Features(image, text), lesson)["triplet"]) == pytest.approx(expected, rel=1e-5)


def test_a_gallery_and_refined_queries_have_no_objects(encoder: GalrEncoder, tmp_path: Path, archive: Path) -> None:
    model = Model(encoder, 0.1)
    with pytest.raises(ModelError, match="objects"):
        Gallery.create(tmp_path / "gallery", model)
    with pytest.raises(InputError, match="--defer"):
        evaluate(model, load_dataset(archive, "val"), refinements=Refinements((0.1,)))


@pytest.fixture
def config(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.setenv("EVIDEX_CACHE", str(archive.parent / "cache"))
    return Config(
        seed=1,
        output=str(tmp_path / "run"),
        data=DataConfig(path=str(archive), augment=False),
        encoder=EncoderConfig(kind="compact", image_size=32, dim=16),
        method=MethodConfig(name="galr"),
        loss=LossConfig(mask_equal_captions=False),
        train=TrainConfig(
            checkpoint_every=40, epochs=40, batch_size=10, learning_rate=1e-3, gradient_clip=1.0, evaluate_every=40
        ),
    )


def test_it_learns_from_objects_that_are_given(config: Config, archive: Path) -> None:
    run = train(config, device=torch.device("cpu"))
    model = load_model(run.model_path, device="cpu")
    dataset = load_dataset(archive, "train")
    found = evaluate(model, dataset, absent=False)
    assert found.encoded is not None
    similarity = found.encoded.images @ found.encoded.texts.T
    own = similarity[dataset.image_of_caption, np.arange(len(dataset.captions))]
    before = (similarity > own).sum(0) + (similarity == own).sum(0) / 2 - 0.5
    assert before.mean() < 0.4 * (len(dataset) - 1)  # chance: half of the others
    assert found.reranked is not None
    assert found.to_json()["reranked"] == found.reranked.to_json()
    assert found.reranked.i2t[1] == recall(multivariate_rerank(similarity), dataset.image_of_caption).i2t[1]
    plain = model.encode_images([dataset.open_image(index) for index in range(len(dataset))])
    assert np.abs(plain - found.encoded.images).max() > 1e-3  # evaluation looked at the objects


def test_without_objects_it_says_what_is_missing(config: Config, archive: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(archive, bare)
    (bare / "objects.json").unlink()
    with pytest.raises(DataError, match=r"objects\.json"):
        train(dataclasses.replace(config, data=DataConfig(path=str(bare))), device=torch.device("cpu"))


def test_a_study_measures_both_rankings(towers: TowerEncoder, archive: Path) -> None:
    found = measure(Model(METHOD.wrap(towers, []), 0.1), str(archive), "recall")
    assert {"rsum", "reranked"} <= found["clean"].keys()
    assert found["noisy"]["reranked"]["rsum"] > 0
