"""The sizes that make one CLIP different from another, and the CLIPConfig they stand for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from transformers import CLIPConfig

from evidex.errors import ModelError


@dataclass(frozen=True)
class ClipArchitecture:
    """A CLIP with a vision transformer. ``end_token`` is the token whose place gives a text its feature."""

    dim: int
    activation: str
    layer_norm_eps: float
    image_size: int
    patch_size: int
    image_width: int
    image_hidden: int
    image_layers: int
    image_heads: int
    vocabulary: int
    context: int
    end_token: int
    text_width: int
    text_hidden: int
    text_layers: int
    text_heads: int

    def config(self) -> CLIPConfig:
        shared = {"hidden_act": self.activation, "layer_norm_eps": self.layer_norm_eps, "projection_dim": self.dim}
        vision = {
            "image_size": self.image_size,
            "patch_size": self.patch_size,
            "hidden_size": self.image_width,
            "intermediate_size": self.image_hidden,
            "num_hidden_layers": self.image_layers,
            "num_attention_heads": self.image_heads,
        }
        text = {
            "vocab_size": self.vocabulary,
            "max_position_embeddings": self.context,
            "hidden_size": self.text_width,
            "intermediate_size": self.text_hidden,
            "num_hidden_layers": self.text_layers,
            "num_attention_heads": self.text_heads,
            "bos_token_id": None,
            "eos_token_id": self.end_token,
            "pad_token_id": self.end_token,
        }
        return CLIPConfig(text_config=text | shared, vision_config=vision | shared, projection_dim=self.dim)

    @classmethod
    def from_config(cls, config: CLIPConfig, *, end_token: int) -> ClipArchitecture:
        vision, text = config.vision_config, config.text_config
        if vision.hidden_act != text.hidden_act or vision.layer_norm_eps != text.layer_norm_eps:
            raise ModelError(
                f"the towers differ in activation or layer norm ({vision.hidden_act}, {text.hidden_act}; "
                f"{vision.layer_norm_eps}, {text.layer_norm_eps}); give a CLIP whose towers agree"
            )
        return cls(
            dim=config.projection_dim,
            activation=vision.hidden_act,
            layer_norm_eps=vision.layer_norm_eps,
            image_size=vision.image_size,
            patch_size=vision.patch_size,
            image_width=vision.hidden_size,
            image_hidden=vision.intermediate_size,
            image_layers=vision.num_hidden_layers,
            image_heads=vision.num_attention_heads,
            vocabulary=text.vocab_size,
            context=text.max_position_embeddings,
            end_token=end_token,
            text_width=text.hidden_size,
            text_hidden=text.intermediate_size,
            text_layers=text.num_hidden_layers,
            text_heads=text.num_attention_heads,
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ClipArchitecture:
        names = {field.name for field in fields(cls)}
        if set(value) != names:
            wrong = ", ".join(sorted(set(value) ^ names))
            raise ModelError(f"the description of a CLIP has unknown or missing keys ({wrong}); save the model again")
        return cls(**value)
