"""Print the oldest minor versions that pyproject.toml allows, as constraints for pip.

torch is that of constraints.txt: old ones come with CUDA libraries alone from the usual index.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Print one line per dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for line in project["dependencies"]:
        name, _, version = line.partition(">=")
        if version and name != "torch":
            print(f"{name}=={version if '.' in version else version + '.0'}.*")
    print((ROOT / "constraints.txt").read_text("utf-8"))


if __name__ == "__main__":
    main()
