"""What a run is made of: settings, the files they are read from, and what is built of them."""

from cycleback.recipe.build import (
    LOSSES,
    SAMPLERS,
    build_batches,
    build_encoder,
    build_loss,
    build_optimizer,
)
from cycleback.recipe.files import RECIPE_FILE, find_recipe, load_recipe, recipe_names, recipe_toml
from cycleback.recipe.sections import (
    DataSection,
    EncoderSection,
    LossSection,
    OptimizerSection,
    Recipe,
    RunSection,
    TCCSection,
)

__all__ = [
    "LOSSES",
    "RECIPE_FILE",
    "SAMPLERS",
    "DataSection",
    "EncoderSection",
    "LossSection",
    "OptimizerSection",
    "Recipe",
    "RunSection",
    "TCCSection",
    "build_batches",
    "build_encoder",
    "build_loss",
    "build_optimizer",
    "find_recipe",
    "load_recipe",
    "recipe_names",
    "recipe_toml",
]
