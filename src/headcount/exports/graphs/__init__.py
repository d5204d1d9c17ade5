"""Graphs: models as computation graphs with any batch and any length, for ONNX Runtime and what reads its format."""
