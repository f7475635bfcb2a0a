"""The Kullback–Leibler divergence between two Dirichlet distributions, stable for any evidence."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.autograd.function import once_differentiable

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_LARGE = 24.0  # above this the asymptotic series below are exact to float64


def dirichlet_kl(alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    """Return KL[Dir(alpha) ‖ Dir(beta)] of each row (…, K) → (…), in float64.

    The textbook formula subtracts numbers like lgamma(e^100) from each other. With Stirling's
    lgamma(x) = (x − ½) log x − x + ½ log 2π + r(x) and digamma(x) = log x − h(x), the large terms
    cancel on paper and only bounded ones are left to the machine.
    """
    alpha, beta = torch.broadcast_tensors(alpha.double(), beta.double())
    divergence: torch.Tensor = _DirichletKl.apply(alpha, beta)  # type: ignore[no-untyped-call]
    return divergence


class _DirichletKl(torch.autograd.Function):
    """The divergence with its gradient in closed form: a few operations instead of those of the forward's twice over.

    The many small ones of a batch are what a training step on a GPU waits for.
    """

    @staticmethod
    def forward(ctx: Any, alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(alpha, beta)
        return _divergence(alpha, beta)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        alpha, beta = ctx.saved_tensors
        alpha_sum, beta_sum = alpha.sum(-1, keepdim=True), beta.sum(-1, keepdim=True)
        of_alpha = of_beta = None
        if ctx.needs_input_grad[0]:
            of_alpha = (alpha - beta) * _trigamma(alpha) - (alpha_sum - beta_sum) * _trigamma(alpha_sum)
            of_alpha = gradient[..., None] * of_alpha
        if ctx.needs_input_grad[1]:
            logs = (beta.log() - beta_sum.log()) - (alpha.log() - alpha_sum.log())
            gaps = (_digamma_gap(beta) - _digamma_gap(beta_sum)) - (_digamma_gap(alpha) - _digamma_gap(alpha_sum))
            of_beta = gradient[..., None] * (logs - gaps)
        return of_alpha, of_beta


def _divergence(alpha: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    alpha_sum, beta_sum = alpha.sum(-1), beta.sum(-1)
    log_alpha, log_beta = alpha.log(), beta.log()
    log_alpha_sum, log_beta_sum = alpha_sum.log(), beta_sum.log()

    log_ratio = (log_beta - log_beta_sum[..., None]) - (log_alpha - log_alpha_sum[..., None])
    cross_entropy = (beta * log_ratio).sum(-1)
    half_logs = 0.5 * ((log_alpha - log_beta).sum(-1) - log_alpha_sum + log_beta_sum)
    remainders = (
        (_stirling_remainder(beta) - _stirling_remainder(alpha)).sum(-1)
        + _stirling_remainder(alpha_sum)
        - _stirling_remainder(beta_sum)
    )
    digammas = ((alpha - beta) * (_digamma_gap(alpha) - _digamma_gap(alpha_sum)[..., None])).sum(-1)
    return cross_entropy + half_logs + remainders - digammas


def _stirling_remainder(x: torch.Tensor) -> torch.Tensor:
    """Return r(x) = lgamma(x) − ((x − ½) log x − x + ½ log 2π)."""
    small = x.clamp(max=_LARGE)
    direct = torch.lgamma(small) - ((small - 0.5) * small.log() - small + _HALF_LOG_2PI)
    inverse = 1 / x.clamp(min=_LARGE)
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188))))
    return torch.where(x < _LARGE, direct, series)


def _digamma_gap(x: torch.Tensor) -> torch.Tensor:
    """Return h(x) = log x − digamma(x), which falls like 1/(2x)."""
    small = x.clamp(max=_LARGE)
    direct = small.log() - torch.digamma(small)
    inverse = 1 / x.clamp(min=_LARGE)
    square = inverse * inverse
    series = inverse * 0.5 + square * (
        1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132)))
    )
    return torch.where(x < _LARGE, direct, series)


def _trigamma(x: torch.Tensor) -> torch.Tensor:
    """Return the derivative of digamma."""
    inverse = 1 / x.clamp(min=_LARGE)
    square = inverse * inverse
    tail = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * 5 / 66)))
    series = inverse + square * (0.5 + inverse * tail)
    return torch.where(x < _LARGE, torch.polygamma(1, x.clamp(max=_LARGE)), series)
