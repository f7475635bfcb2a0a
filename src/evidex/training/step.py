"""One training step, on one screen.

The loss needs the features of the whole batch, their computation does not: features are computed chunk by
chunk, the loss is differentiated with respect to the features, and each chunk is then run again with its
part of that gradient (feature caching). The batch Dirichlet stays exact and memory is bound by the chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from evidex.config import Config
from evidex.encoders.protocol import DualEncoder
from evidex.losses.labels import label_loss
from evidex.losses.total import Features, LossParts, summed
from evidex.losses.twins import twin_loss
from evidex.methods.protocol import Implementation, MethodLesson, implementation
from evidex.training.distributed import World
from evidex.training.state import TrainState, scale_bounds


@dataclass(frozen=True)
class Labelled:
    """L pictures with labels beside the pairs: which of C each has (L,), and which exclude the text of which (C, C)."""

    label: torch.Tensor
    exclude: torch.Tensor


@dataclass(frozen=True)
class Pairs:
    """One step's pairs on the device: K pictures, and m · K captions as m pairings one after another.

    ``pixels`` holds L pictures with labels after those, or instead of all of them what a locked tower pools,
    (n, out_dim); ``tokens`` the captions' twins, as many as there are captions, and the C labels.
    """

    pixels: torch.Tensor
    tokens: dict[str, torch.Tensor]
    image_mentor: torch.Tensor | None
    text_mentor: torch.Tensor | None
    caption_ids: torch.Tensor
    pairings: int = 1
    image_ids: torch.Tensor | None = None  # equal ids mark the same picture
    has_twin: torch.Tensor | None = None  # (m · K,) None where no twins are there
    labels: Labelled | None = None
    facts: torch.Tensor | None = None
    graphs: torch.Tensor | None = None  # of the pictures' objects


def take_step(
    state: TrainState,
    pairs: Pairs,
    config: Config,
    *,
    step: int,
    steps: int,
    generator: torch.Generator,
    world: World,
) -> LossParts:
    """Move the weights by ``pairs`` and return the parts of the loss, not waited for; an epoch has ``steps`` steps."""
    epoch = step / steps
    state.optimizer.zero_grad(set_to_none=True)
    seed = int(torch.randint(2**40, (1,), generator=generator))
    parts = compute_gradients(state.encoder, state.scale, pairs, config, epoch=epoch, seed=seed, world=world)
    if config.train.gradient_clip:
        nn.utils.clip_grad_norm_(state.encoder.parameters(), config.train.gradient_clip)
    state.optimizer.step()
    with torch.no_grad():
        state.scale.clamp_(*scale_bounds(config.loss))
    state.encoder.after_step()
    if state.average:
        state.average.update(step)
    return parts.detached()


def compute_gradients(
    encoder: DualEncoder,
    scale: nn.Parameter,
    pairs: Pairs,
    config: Config,
    *,
    epoch: float,
    seed: int,
    world: World = World(),  # noqa: B008 - immutable
) -> LossParts:
    """Leave the gradient of the step's loss in the parameters and return the loss."""
    chunk_size, bf16 = config.train.chunk_size, config.train.bf16
    images = _chunks(len(pairs.pixels), chunk_size, world)
    texts = _chunks(len(pairs.tokens["input_ids"]), chunk_size * pairs.pairings, world)
    whole = len(images) == 1  # then the first run's graph is kept instead of running again

    def image_chunk(part: slice) -> torch.Tensor:
        if pairs.graphs is not None:
            return encoder.image_features_with(pairs.pixels[part], pairs.graphs[part])
        return encoder.image_outputs(pairs.pixels[part])

    def text_chunk(part: slice) -> torch.Tensor:
        return encoder.text_outputs({name: ids[part] for name, ids in pairs.tokens.items()})

    zimg = [_run(image_chunk, part, seed, bf16, encoder, graph=whole) for part in images]
    ztxt = [_run(text_chunk, part, seed + 1, bf16, encoder, graph=whole) for part in texts]
    own_image = torch.cat(zimg).detach().requires_grad_()
    own_text = torch.cat(ztxt).detach().requires_grad_()

    image = world.gather(own_image, len(pairs.pixels))
    text = world.gather(own_text, len(pairs.tokens["input_ids"]))
    lesson = MethodLesson(config.loss, epoch, scale.exp(), encoder, seed)
    parts = _loss(image, text, pairs, implementation(config.method_name), lesson)
    parts.total.backward()

    if config.train.learns != "texts":
        _return_gradient(image_chunk, images, zimg, own_image, seed, bf16, encoder)
    _return_gradient(text_chunk, texts, ztxt, own_text, seed + 1, bf16, encoder)
    for parameter in (scale, *encoder.loss_parameters()):
        if parameter.grad is not None:
            parameter.grad /= world.size  # every process computed it whole
    world.sum_gradients([*encoder.parameters(), scale])
    return parts


def _loss(
    image: torch.Tensor, text: torch.Tensor, pairs: Pairs, method: Implementation, lesson: MethodLesson
) -> LossParts:
    """Return the mean loss over the pairings, and what twins and labels add to it."""
    captions = len(pairs.caption_ids)
    count = captions // pairs.pairings
    results = []
    for pairing in range(pairs.pairings):
        part = slice(pairing * count, (pairing + 1) * count)
        text_mentor = None if pairs.text_mentor is None else pairs.text_mentor[part]
        features = Features(
            image[:count],
            text[part],
            pairs.image_mentor,
            text_mentor,
            pairs.caption_ids[part],
            pairs.image_ids,
            pairs.facts,
        )
        results.append(summed(method.loss(features, lesson)))
    names = results[0].parts
    means = {name: torch.stack([result.parts[name] for result in results]).mean() for name in names}
    total = torch.stack([result.total for result in results]).mean()
    beside = _beside(image, text, pairs, lesson)
    return LossParts(total + sum(beside.values()) if beside else total, means | beside)


def _beside(image: torch.Tensor, text: torch.Tensor, pairs: Pairs, lesson: MethodLesson) -> dict[str, torch.Tensor]:
    """The weighted parts of the loss that are not between the pairs of the batch."""
    loss, temperature, parts = lesson.config, lesson.temperature, {}
    captions = len(pairs.caption_ids)
    count = captions // pairs.pairings
    if pairs.has_twin is not None:
        pictures = image[:count].float().repeat(pairs.pairings, 1)
        true, twin = ((pictures * rows.float()).sum(1) for rows in (text[:captions], text[captions : 2 * captions]))
        chosen = pairs.has_twin
        parts["twins"] = loss.twins * twin_loss(true[chosen], twin[chosen], temperature=temperature)
    if pairs.labels is not None:
        label, exclude = pairs.labels.label, pairs.labels.exclude
        similarity = image[count:].float() @ text[-len(exclude) :].float().T
        parts["labels"] = loss.labels * label_loss(similarity, label, exclude, temperature=temperature)
    return parts


def _run(
    chunk: Callable[[slice], torch.Tensor], part: slice, seed: int, bf16: bool, encoder: DualEncoder, *, graph: bool
) -> torch.Tensor:
    """Return a chunk's features; dropout depends on seed and place alone, so a second run repeats it."""
    torch.manual_seed(seed + 2 * part.start)
    with torch.set_grad_enabled(graph), torch.autocast(encoder.device.type, torch.bfloat16, enabled=bf16):
        return chunk(part)


def _return_gradient(
    chunk: Callable[[slice], torch.Tensor],
    parts: list[slice],
    features: list[torch.Tensor],
    leaf: torch.Tensor,
    seed: int,
    bf16: bool,
    encoder: DualEncoder,
) -> None:
    """Run each chunk's backward with its rows of ``leaf.grad``."""
    if leaf.grad is None:
        return
    for part, first, gradient in zip(parts, features, leaf.grad.split([len(z) for z in features]), strict=True):
        again = first if first.requires_grad else _run(chunk, part, seed, bf16, encoder, graph=True)
        again.backward(gradient)


def _chunks(count: int, size: int, world: World) -> list[slice]:
    own = world.share(count)
    size = size or own.stop - own.start
    return [slice(start, min(start + size, own.stop)) for start in range(own.start, own.stop, size)]
