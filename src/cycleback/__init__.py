"""Learn to align videos of the same action, without labels.

The names below are loaded when first used, so that `import cycleback` and `cycleback --help` stay instant.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.3.0"

_HOMES = {
    "Alignment": "cycleback.alignment",
    "EmbeddingSet": "cycleback.embeddings",
    "Encoder": "cycleback.models",
    "Recipe": "cycleback.recipe",
    "Report": "cycleback.evaluation",
    "TCCLoss": "cycleback.losses",
    "UserError": "cycleback.errors",
    "align": "cycleback.alignment",
    "embed_videos": "cycleback.runs",
    "evaluate": "cycleback.evaluation",
    "find_action": "cycleback.applications",
    "find_offset": "cycleback.applications",
    "load_encoder": "cycleback.runs",
    "read_dataset": "cycleback.data",
    "studio": "cycleback.web.notebook",
    "train": "cycleback.runs",
    "write_synced": "cycleback.applications",
}

__all__ = [  # noqa: RUF022 - the order of a user's work
    "read_dataset",
    "train",
    "Recipe",
    "TCCLoss",
    "load_encoder",
    "Encoder",
    "embed_videos",
    "EmbeddingSet",
    "align",
    "Alignment",
    "find_offset",
    "write_synced",
    "find_action",
    "studio",
    "evaluate",
    "Report",
    "UserError",
    "__version__",
]

if TYPE_CHECKING:
    from cycleback.alignment import Alignment, align
    from cycleback.applications import find_action, find_offset, write_synced
    from cycleback.data import read_dataset
    from cycleback.embeddings import EmbeddingSet
    from cycleback.errors import UserError
    from cycleback.evaluation import Report, evaluate
    from cycleback.losses import TCCLoss
    from cycleback.models import Encoder
    from cycleback.recipe import Recipe
    from cycleback.runs import embed_videos, load_encoder, train
    from cycleback.web.notebook import studio


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'cycleback' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
