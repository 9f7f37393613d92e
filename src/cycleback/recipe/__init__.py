"""Recipes: the settings of a run, the files that hold them, and the objects built from them.

The classes of the sections, such as `EncoderSettings`, are in `cycleback.recipe.sections`.
"""

from cycleback.recipe.build import build_batches, build_encoder, build_loss, build_optimizer
from cycleback.recipe.files import RECIPE_FILE, load_recipe, recipe_names, recipe_toml, require_used
from cycleback.recipe.sections import Recipe

__all__ = [
    "RECIPE_FILE",
    "Recipe",
    "build_batches",
    "build_encoder",
    "build_loss",
    "build_optimizer",
    "load_recipe",
    "recipe_names",
    "recipe_toml",
    "require_used",
]
