"""The 17 methods of the paper's Table I, in its order: what each is, and what of it is here.

Light on purpose: the command that prints this table imports no torch.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["implemented", "given objects", "measured", "quoted"]
"""Trained here; trained here if a detector's objects are given; a published model that is measured and not trained;
numbers quoted from the paper alone."""

STATE_WORDS = {
    "implemented": "implemented",
    "given objects": "implemented: trains where the objects of each picture are given",
    "measured": "implemented: measured, not trained",
    "quoted": "quoted, not implemented",
}


@dataclass(frozen=True)
class Method:
    """One row of Table I."""

    name: str
    """As configurations say it (``method.name``)."""
    title: str
    """As Table I prints it."""
    reference: str
    """Its number in the paper's reference list."""
    what: str
    paper: str
    needs: str
    """Of loss, network, parameters and similarity: what it brings, or what running it would take."""
    state: State
    source: str
    """What the implementation follows and where it departs from it; or what was looked for."""

    @property
    def words(self) -> str:
        return STATE_WORDS[self.state]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "state": self.words}


def _not_found(name: str, title: str, reference: str, what: str, paper: str, seen: str) -> Method:
    """A row whose definition could not be read anywhere."""
    return Method(
        name,
        title,
        reference,
        what,
        paper,
        "its definition",
        "quoted",
        "looked for four times by name, title and authors: in names of repositories, contents of files, issues, pages "
        "on remote-sensing image–text retrieval and two lists of its papers (jaychempan/Awesome-RSITR, "
        "BaolanChen/Awesome-Remote-Sensing-Cross-Modal-Image-Text-Retrieval): neither code nor a text that defines "
        f"it; {seen}",
    )


_ROWS = (
    Method(
        "amfmn",
        "AMFMN",
        "[6]",
        "multi-scale visual self-attention gates the text feature; similarity depends on both sides",
        "Yuan et al., Exploring a Fine-Grained Multiscale Method for Cross-Modal Remote Sensing Image Retrieval, 2021",
        "network around an image pyramid, similarity of its own (no gallery), triplet loss over all negatives",
        "implemented",
        "code of the authors (xiaoyuan1996/AMFMN, soft attention; Table I quotes their variant fusion on RSICD and sim "
        "on RSITMD) and its loss with a fixed margin; on our towers instead of ResNet-18 and skip-thought vectors, "
        "whose weights are not at hand",
    ),
    Method(
        "galr",
        "GaLR",
        "[9]",
        "visual self-attention over the whole picture fused with a graph over detected objects; a second ranking",
        "Yuan et al., Remote Sensing Cross-Modal Text-Image Retrieval Based on Global and Local Information, 2022",
        "network around an image pyramid, triplet loss over all negatives; beside the captions objects.json, what a "
        "detector of DOTA's classes found in each picture, or objects.npz, the authors' matrices (docs/data.md)",
        "given objects",
        "code of the authors (xiaoyuan1996/GaLR): graph convolutions, fusion, loss and second ranking; the fusion has "
        "two weights, where the code takes the first twice, which a cosine cancels; the graph of boxes is ours, since "
        "neither the code nor a readable text says how its matrices are made (those of RSICD and RSITMD are in its "
        "repository, in files that were not at hand here); pictures are turned and cut while their objects stay, as "
        "there, and a degraded picture has those of the clean one; on our towers instead of ResNet-18 and skip-thought "
        "vectors; Table I quotes it with the second ranking",
    ),
    _not_found(
        "smlgn",
        "SMLGN",
        "[34]",
        "a convolutional and recurrent network with auxiliary supervision",
        "by its initials probably Chen et al., Integrating Multisubspace Joint Learning With Multilevel Guidance for "
        "Cross-Modal Retrieval of Remote Sensing Images, 2024",
        "that title stands in a reference list, and tables of other papers have its numbers",
    ),
    Method(
        "kamcl",
        "KAMCL",
        "[22]",
        "concept words as knowledge, momentum contrast with a queue, hierarchical aggregation",
        "Ji et al., Knowledge-Aided Momentum Contrastive Learning for Remote-Sensing Image Text Retrieval, 2023",
        "network around an image pyramid, momentum copies of both towers, queues, concept targets",
        "implemented",
        "code of the authors (mcx-mcx/KAMCL), concepts from the training captions as there (504 of the 512 that it "
        "lists for RSICD); its copies follow, and its hinges weigh, as with its batches of 100 pairs; each copy "
        "follows as a whole, where the code's loop over both towers ends with the shorter one; on our towers instead "
        "of ResNet-18 and skip-thought vectors, whose weights are not at hand",
    ),
    Method(
        "clip",
        "CLIP",
        "[74]",
        "zero-shot: CLIP ViT-B/32 as published",
        "Radford et al., Learning Transferable Visual Models From Natural Language Supervision, 2021",
        "the published weights: evidex evaluate --model openai/clip-vit-base-patch32, a folder, or OpenAI's own file "
        "with --tokenizer FOLDER",
        "measured",
        "the published model",
    ),
    Method(
        "sirs",
        "SIRS",
        "[35]",
        "similarities of a text and a picture at four scales, averaged; on pictures with masks, segmentation beside it",
        "Zhu et al., SIRS: Multitask Joint Learning for Remote Sensing Foreground-Entity Image–Text Retrieval, 2024",
        "a layer for each of four grids, triplet loss over all negatives; its segmentation branch needs masks",
        "implemented",
        "code of the authors (StarBurstStream0/SIRS) as its configuration for RSICD has it, without the segmentation "
        "branch, since masks were drawn for RSITMD alone; on our towers instead of ResNet-18 and skip-thought vectors",
    ),
    Method(
        "cup",
        "CUP",
        "[27]",
        "prompts for both towers of a frozen CLIP, drawn from a context-clustering network, with uncertainty",
        "Cross-modal Remote Sensing Image-text Retrieval via Context and Uncertainty-aware Prompt, 2024",
        "prompt tokens in both transformers, a second image network for context, sampled features in the loss",
        "implemented",
        "code of the authors (TangXu-Group/Cross-modal-remote-sensing-image-and-text-retrieval-models, CUP), 16 "
        "prompts; on CLIP alone, since convolutional towers have no tokens to put prompts among",
    ),
    Method(
        "vsepp",
        "VSE++",
        "[76]",
        "hinge on the hardest negative",
        "Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, 2018",
        "loss",
        "implemented",
        "the paper's definition; beginning with all negatives, as VSE∞'s authors do with this loss, is a switch",
    ),
    Method(
        "poly",
        "Poly",
        "[77]",
        "the hardest pairs weighted by polynomials of their similarity",
        "Wei et al., Universal Weighting Metric Learning for Cross-Modal Matching, 2020",
        "loss",
        "implemented",
        "the paper's definition, coefficients of the authors' code (wayne980/PolyLoss); where heads start from nothing "
        "all negatives first, which is ours",
    ),
    Method(
        "vse_infty",
        "VSE∞",
        "[78]",
        "a learned pooling of sorted features (generalised pooling operator), with VSE++'s loss",
        "Chen et al., Learning the Best Pooling Strategy for Visual Semantic Embedding, 2021",
        "loss, pooling in both towers",
        "implemented",
        "code of the authors (woodfrog/vse_infty), its dropping of places in training included; its first epoch of "
        "all negatives is a switch, on in the benchmark; the image tower and its batch norm learn from the first step",
    ),
    Method(
        "infonce",
        "InfoNCE",
        "[79]",
        "symmetric cross entropy with a learned scale",
        "van den Oord et al., Representation Learning with Contrastive Predictive Coding, 2018",
        "loss",
        "implemented",
        "the definition that CLIP uses",
    ),
    Method(
        "pau",
        "PAU",
        "[80]",
        "learnable prototypes of each modality give evidence, and from it an uncertainty of its own",
        "Li et al., Prototype-based Aleatoric Uncertainty Quantification for Cross-modal Retrieval, 2023",
        "loss, eight prototypes a modality, an uncertainty score",
        "implemented",
        "code of the authors (leolee99/PAU, Image-Text-Retrieval) with the weights of its ViT-B/32 command; "
        "re-ranking, off there too, is left out",
    ),
    _not_found(
        "air",
        "AIR",
        "[81]",
        "a CLIP backbone with another loss",
        "title unknown: the paper's text at hand has no reference list",
        "neither the name nor its figures of Table I were found elsewhere",
    ),
    Method(
        "pe_rsitr",
        "PE-RSITR",
        "[32]",
        "adapters in frozen towers with a part shared by both, and a hybrid contrastive loss",
        "Yuan et al., Parameter-Efficient Transfer Learning for Remote Sensing Image–Text Retrieval, 2023",
        "loss, adapters in both towers; the towers' own weights stay",
        "implemented",
        "code of the authors (ZhanYang-nwpu/PE-RSITR, its earlier files for the loss); in convolutional towers the "
        "adapter stands beside each block, and heads that start from nothing learn, by all negatives first, which is "
        "ours",
    ),
    _not_found(
        "glgsa",
        "GLGSA",
        "[16]",
        "a CLIP backbone with global and local features",
        "title unknown: the paper's text at hand has no reference list",
        "neither the name nor its figures of Table I were found elsewhere",
    ),
    Method(
        "fgvla",
        "FGVLA",
        "[21]",
        "patches aligned with the nouns of a caption beside the whole, on CLIP with adapters",
        "Ji-Haoyang/FGVLA, fine-grained vision–language alignment for remote sensing",
        "adapters, three losses, similarity of parts and whole, a part-of-speech tagger",
        "implemented",
        "code of the authors (Ji-Haoyang/FGVLA): adapters, losses, weights and similarity; nouns are told by a list of "
        "words that are none instead of NLTK's tagger, and stand where their tokens are; padding is no token to attend "
        "to; in convolutional towers adapters stand beside the blocks with few places, which is ours",
    ),
    Method(
        "remoteclip",
        "RemoteCLIP",
        "[25]",
        "CLIP trained on with 165,745 overhead images",
        "Liu et al., RemoteCLIP: A Vision Language Foundation Model for Remote Sensing, 2024",
        "the published weights and any CLIP's tokenizer: evidex evaluate --model FILE.pt --tokenizer FOLDER "
        "--activation gelu",
        "measured",
        "the published model, as its authors load it (ChenDelong1999/RemoteCLIP); files of open_clip and of OpenAI are "
        "read alike, TorchScript too",
    ),
)

METHODS: dict[str, Method] = {row.name: row for row in _ROWS}
OURS = ("elc",)
ON_CLIP_ALONE = ("cup",)
GIVEN_OBJECTS = tuple(row.name for row in _ROWS if row.state == "given objects")
TRAINABLE = tuple(row.name for row in _ROWS if row.state in ("implemented", "given objects"))
