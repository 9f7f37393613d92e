"""Write models for other programs: ONNX, which `cycleback.exported` and browsers run without torch."""

from cycleback.export.write import FORMATS, export_onnx

__all__ = ["FORMATS", "export_onnx"]
