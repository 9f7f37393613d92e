"""Models that were exported as ONNX: read one, and embed videos with it. Nothing here needs torch.

MODEL/base.onnx       frames to features, if a network sees them
MODEL/pose.onnx       images to the joints of a person, if the model has the stream `pose`
MODEL/embedder.onnx   features of whole videos to embeddings
MODEL/model.json      sizes, streams, weights, digests of the files, parity with torch
MODEL/README.md       the same for people

`cycleback.export` writes them.
"""

from cycleback.exported.embed import embed_exported
from cycleback.exported.model import ExportedModel, check_options, is_exported, read_model

__all__ = ["ExportedModel", "check_options", "embed_exported", "is_exported", "read_model"]
