"""The towers as they are used, not trained: batch norms folded away, bfloat16 where the CPU computes in it.

The plain towers stay what they are; this form is made from them when a model is loaded on a CPU and is never saved.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn
from torch.nn.functional import normalize

from evidex.encoders.image_towers import ImageTower, _SameConv2d
from evidex.encoders.towers import TowerEncoder

# Pictures that pass together: of more of them the wide first layers would not stay in the cache.
_CHUNK = {torch.bfloat16: 8, torch.float32: 4}
# Rounding in the first layers costs the most accuracy (above all in even pictures) and saves little time.
_EXACT_CONVOLUTIONS = 3


class InferenceTowers(nn.Module):
    """The features of ``encoder``, faster: equal up to float32 rounding, or close to it with ``bfloat16``.

    Without a word about ``bfloat16`` it is used where the CPU has instructions for it. Later changes of the encoder's
    weights are not seen.
    """

    def __init__(self, encoder: TowerEncoder, *, bfloat16: bool | None = None) -> None:
        super().__init__()
        self.low_precision = has_bfloat16_instructions() if bfloat16 is None else bfloat16
        self.image_tower = folded(encoder.image_tower)
        self.text_tower = copy.deepcopy(encoder.text_tower)
        self.image_head, self.text_head = copy.deepcopy(encoder.image_head), copy.deepcopy(encoder.text_head)
        if self.low_precision:
            _lower_convolutions(self.image_tower)
            _lower_linears(self.text_tower)
        self.image_tower.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.eval().requires_grad_(False)

    def image_features(self, pixels: torch.Tensor) -> torch.Tensor:
        """Map (n, 3, s, s), uint8 or float in [0, 255], to unit rows (n, dim) in float32."""
        parts = pixels.split(_CHUNK[torch.bfloat16 if self.low_precision else torch.float32])
        pooled = [self.image_tower(self.image_tower.normalise(part)).float() for part in parts]
        return normalize(self.image_head(torch.cat(pooled)), dim=-1)

    def text_features(self, tokens: dict[str, torch.Tensor]) -> torch.Tensor:
        """Map the encoder's tokens to unit rows (n, dim) in float32."""
        pooled = self.text_tower(tokens["input_ids"], tokens["attention_mask"])
        return normalize(self.text_head(pooled.float()), dim=-1)


def has_bfloat16_instructions() -> bool:
    """Say whether this CPU multiplies bfloat16 natively; where it is emulated, float32 is faster."""
    capabilities = torch.cpu.get_capabilities() if torch.backends.mkldnn.is_available() else {}
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def folded(tower: ImageTower) -> ImageTower:
    """Return a copy of ``tower`` in which every batch norm has become part of the convolution before it.

    In every tower a batch norm is registered right after its convolution, in the same module.
    """
    tower = copy.deepcopy(tower).eval()
    for parent in list(tower.modules()):
        previous: nn.Module | None = None
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.BatchNorm2d):
                if not isinstance(previous, nn.Conv2d) or previous.out_channels != child.num_features:
                    raise TypeError(f"batch norm '{name}' does not follow its convolution; register it right after it")
                _fold(previous, child)
                setattr(parent, name, nn.Identity())
            previous = child
    return tower


def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    """Put ``norm``, as it acts after training, into ``convolution``; reckoned in float64."""
    mean, variance = norm.running_mean, norm.running_var
    if mean is None or variance is None:
        raise TypeError("a batch norm without running statistics cannot be folded; keep its statistics in training")
    dtype = convolution.weight.dtype
    scale = (variance.detach().double() + norm.eps).rsqrt()
    shift = -mean.detach().double() * scale
    if norm.affine:
        scale, shift = scale * norm.weight.detach().double(), shift * norm.weight.detach().double()
        shift = shift + norm.bias.detach().double()
    if convolution.bias is not None:
        shift = shift + convolution.bias.detach().double() * scale
    weight = convolution.weight.detach().double() * scale.view(-1, 1, 1, 1)
    convolution.weight, convolution.bias = nn.Parameter(weight.to(dtype)), nn.Parameter(shift.to(dtype))


def rounded_keeping_sums(weight: torch.Tensor) -> torch.Tensor:
    """Return ``weight`` in bfloat16 so that each filter's sum is kept.

    Large weights come first and each hands its rounding error on to the next. What a filter makes of an even surface
    hangs on that sum; in a depthwise filter of few taps nearest rounding would shift it, and every later layer with it.
    """
    taps = weight.detach().double().flatten(1)
    order = taps.abs().argsort(dim=1, descending=True)
    rounded = torch.empty_like(taps)
    error = torch.zeros(len(taps), 1, dtype=torch.float64)
    for place in order.T.unsqueeze(2):
        wanted = taps.gather(1, place) + error
        kept = wanted.bfloat16().double()
        rounded.scatter_(1, place, kept)
        error = wanted - kept
    return rounded.view_as(weight).bfloat16()


class _LowConvolution(nn.Module):
    """A convolution of bfloat16 with a bias in float32: rounded biases would cost more accuracy than all the rest."""

    def __init__(self, convolution: nn.Conv2d) -> None:
        super().__init__()
        self._form = convolution
        weight = convolution.weight
        self.weight = nn.Parameter(rounded_keeping_sums(weight) if convolution.groups > 1 else weight.bfloat16())
        self.bias = convolution.bias
        self._padding = tuple(int(side) for side in convolution.padding)

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        form = self._form
        grid, padding = form.padded(grid) if isinstance(form, _SameConv2d) else (grid, self._padding)
        grid = grid.bfloat16()
        return torch.mkldnn_convolution(grid, self.weight, self.bias, padding, form.stride, form.dilation, form.groups)


def _lower_convolutions(tower: nn.Module) -> None:
    convolutions = [(name, module) for name, module in tower.named_modules() if isinstance(module, nn.Conv2d)]
    for name, convolution in convolutions[_EXACT_CONVOLUTIONS:]:
        tower.set_submodule(name, _LowConvolution(convolution))


def _lower_linears(tower: nn.Module) -> None:
    """Lower the matrices; sums between layers and their norms stay in float32."""
    for module in tower.modules():
        if isinstance(module, nn.Linear):
            module.bfloat16().register_forward_pre_hook(_as_the_weights)


def _as_the_weights(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[torch.Tensor]:
    return (inputs[0].to(module.weight.dtype),)
