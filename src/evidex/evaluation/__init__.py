"""Recall, selective retrieval and the protocol that measures both."""

from evidex.evaluation.query_uncertainty import Scores, uncertainty_scores
from evidex.evaluation.recall import Recall, hits_i2t, hits_t2i, recall
from evidex.evaluation.selective import Selective, auroc, selective

__all__ = [
    "Recall",
    "Scores",
    "Selective",
    "auroc",
    "hits_i2t",
    "hits_t2i",
    "recall",
    "selective",
    "uncertainty_scores",
]
