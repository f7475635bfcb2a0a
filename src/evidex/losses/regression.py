"""Distillation of the mentors' features themselves, beside the relations among them (Section III-D)."""

from __future__ import annotations

import torch


def regression_loss(student: torch.Tensor, mentor: torch.Tensor | None) -> torch.Tensor:
    """Return the mean squared distance of unit rows from a mentor's unit rows in the same space; 0 without a mentor."""
    if mentor is None:
        return student.new_zeros(())
    return (student.float() - mentor.float()).square().sum(-1).mean()


def shared_space(image: torch.Tensor, text: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a mentor's features of both modalities in ``dim`` dimensions, as unit rows.

    A student can come near a mentor's features only in a space of its own size. One projection for both modalities,
    onto the directions that hold most of their products, keeps the similarity between pictures and texts. Features of
    no more dimensions stay as they are: a student that begins as its mentor begins where it should be.
    """
    if image.shape[1] <= dim:
        return _padded(image, dim), _padded(text, dim)
    rows = torch.cat([image, text]).double()
    _, directions = torch.linalg.eigh(rows.T @ rows)
    kept = directions[:, -dim:].flip(1)  # eigenvalues ascend
    # An eigenvector's sign is arbitrary: the largest entry is made positive, so that every machine agrees.
    kept = kept * kept.gather(0, kept.abs().argmax(0, keepdim=True)).sign()
    projected = [torch.nn.functional.normalize(part.double() @ kept, dim=-1) for part in (image, text)]
    return projected[0].to(image.dtype), projected[1].to(text.dtype)


def _padded(rows: torch.Tensor, dim: int) -> torch.Tensor:
    """Return ``rows`` with zeros up to ``dim`` columns: a small mentor fills part of a larger student's space."""
    return torch.nn.functional.pad(rows, (0, dim - rows.shape[1]))
