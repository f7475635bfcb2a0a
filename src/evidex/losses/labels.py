"""What labels teach: pictures of a label are drawn to its text and kept from the texts of labels that exclude it.

A label is no caption. Many pictures share it, and it may hold for pictures of other labels too: every "dense
residential" scene is "residential". So a picture's own label is never a negative of its pictures, nor is a label that
may hold beside it, and all pictures of a text are its positives.
"""

from __future__ import annotations

import torch
from torch.nn.functional import softplus

from evidex.evidence import Temperature, log_concentration
from evidex.losses.edl import NOTHING


def label_loss(
    similarity: torch.Tensor, label: torch.Tensor, exclude: torch.Tensor, *, temperature: Temperature
) -> torch.Tensor:
    """Return the evidential likelihood (Eq. 5) of labels, the mean over pictures, summed over both directions.

    ``similarity`` (L, C) of pictures to the texts of C labels; ``label`` (L,) the place of each picture's own;
    ``exclude`` (C, C), bool: which labels' pictures (rows) exclude which texts (columns). A picture's evidence for its
    text stands against that for the texts it excludes, and against that of the pictures that exclude the text.
    """
    if similarity.ndim != 2 or len(label) != len(similarity) or exclude.shape != (similarity.shape[1],) * 2:
        raise ValueError(
            f"similarity (L, C) with L labels and (C, C) exclusions, not {tuple(similarity.shape)}, "
            f"{tuple(label.shape)} and {tuple(exclude.shape)}"
        )
    log_alpha = log_concentration(similarity.double(), temperature)
    own = log_alpha.gather(1, label[:, None]).squeeze(1)
    negative = exclude[label]
    others = log_alpha.masked_fill(~negative, NOTHING)
    to_texts = softplus(others.logsumexp(1) - own)
    to_pictures = softplus(others.logsumexp(0)[label] - own)
    return to_texts.mean() + to_pictures.mean()
