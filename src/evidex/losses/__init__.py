"""Losses on tensors: the parts of ELC and the methods it is compared with."""

from evidex.losses.contrastive import (
    all_triplets_loss,
    hardest_triplet_loss,
    info_nce_loss,
    polynomial_loss,
    triplet_loss,
)
from evidex.losses.dirichlet import dirichlet_kl
from evidex.losses.edl import EdlParts, edl_loss, edl_parts
from evidex.losses.labels import label_loss
from evidex.losses.relation import relation_loss
from evidex.losses.total import Features, LossParts, total_loss
from evidex.losses.twins import twin_loss
from evidex.losses.ucl import ucl_loss

__all__ = [
    "EdlParts",
    "Features",
    "LossParts",
    "all_triplets_loss",
    "dirichlet_kl",
    "edl_loss",
    "edl_parts",
    "hardest_triplet_loss",
    "info_nce_loss",
    "label_loss",
    "polynomial_loss",
    "relation_loss",
    "total_loss",
    "triplet_loss",
    "twin_loss",
    "ucl_loss",
]
