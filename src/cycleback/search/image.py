"""A query by an image file.

An image has no past: where the encoder looks at earlier frames too, the image stands for all of them.
"""

from pathlib import Path

import torch

from cycleback.data.sources import read_image
from cycleback.embeddings.embed import embed_maps
from cycleback.errors import DataError
from cycleback.models import Encoder, fingerprint
from cycleback.search.query import Query, vector_query


@torch.inference_mode()
def image_query(encoder: Encoder, path: Path | str) -> Query:
    """The embedding of an image, as of a video that stands still."""
    path = Path(path)
    if encoder.input_kind != "images":
        raise DataError(f"cannot look for {path}: this encoder was made for sequences (.npz), not for images")
    if encoder.embedder.standardize:
        raise DataError(
            f"cannot look for the image {path} with this encoder: it describes a frame by how it differs "
            "from the rest of its video. Look for a frame of a video (VIDEO@SECONDS), or use a trained run."
        )
    pixels = read_image(path, size=encoder.frame_size, fit=encoder.fit)
    images = torch.from_numpy(pixels.copy())[None].movedim(-1, 1).to(encoder.device)
    embeddings = embed_maps(encoder.embedder, iter([encoder.eval().features(images)]), device=encoder.device)
    return vector_query(embeddings[0], encoder=fingerprint(encoder), path=path)
