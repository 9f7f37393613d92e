"""Puts the trained models, which lie beside src/, into the package; all else is in pyproject.toml.

A wheel has `models/NAME` as `cycleback/published/NAME`. An editable install reads them where they are.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithModels(build_py):
    """The package, and a folder in it for every model."""

    def run(self) -> None:
        """Build the package, then copy the models into it."""
        super().run()
        if not self.editable_mode:
            for source in model_files():
                target = Path(self.build_lib, "cycleback", "published", source.relative_to("models"))
                self.mkpath(str(target.parent))
                self.copy_file(str(source), str(target))

    def get_source_files(self) -> list[str]:
        """What a source distribution needs."""
        return [*super().get_source_files(), *map(str, model_files())]


def model_files() -> list[Path]:
    """The files of all models: models/NAME/FILE."""
    return sorted(path for path in Path("models").glob("*/[!.]*") if path.is_file())


setup(cmdclass={"build_py": BuildWithModels})
