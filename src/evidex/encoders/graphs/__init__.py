"""A model's towers written down as ONNX graphs, from its description alone: without torch, without weights."""
