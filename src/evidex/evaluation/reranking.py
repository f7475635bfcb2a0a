"""Recall after a method has ranked the answers of each query again, which some do when all similarities are known."""

from __future__ import annotations

from evidex.evaluation.features import Encoded, match
from evidex.evaluation.recall import Recall, best_ranks_i2t, best_ranks_t2i, recall_of


def reranked_recall(model: object, encoded: Encoded) -> Recall | None:
    """Recall of both directions, each from its own second ranking; None where ``model`` ranks once."""
    again = getattr(model, "reranked", None)
    if again is None:
        return None
    similarity = match(encoded.images, encoded.texts, encoded.compare).similarity
    of_images = again(similarity)
    if of_images is None:
        return None
    of_texts = again(similarity.T).T
    owner = encoded.image_of_caption
    return recall_of(best_ranks_i2t(of_images, owner), best_ranks_t2i(of_texts, owner))
