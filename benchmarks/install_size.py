"""Install the wheel in a bare environment, align two videos with it, and measure size and time.

The wheel is built, and installed without extras and without anything of this checkout. Then `cycleback synth`
renders two videos and `cycleback align` aligns them there. The baseline is an environment with torch alone:
most of the size is torch. Both get the torch of `constraints.txt`.

Example:
    python benchmarks/install_size.py
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

from cycleback.files import write_json
from cycleback.provenance import commit

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results" / "install.json"
LIST_PACKAGES = """
import importlib.metadata as metadata, json
found = {}
for package in metadata.distributions():
    files = [file.locate() for file in package.files or ()]
    found[package.name] = [package.version, sum(file.stat().st_size for file in files if file.is_file())]
print(json.dumps(found))
"""
TOOLS = ("pip", "setuptools")  # of the environment itself
SHOWN = 12  # packages in the table


def run(command: list[str | Path], folder: Path) -> str:
    """Run a command apart from this checkout and return what it prints."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CYCLE"))
    }
    environment = {**inherited, "CYCLEBACK_CACHE": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], folder)
    return next(folder.glob("cycleback-*.whl"))


def install(what: str | Path, folder: Path) -> dict[str, Any]:
    """Install a package into a new environment `folder`; seconds and megabytes of all packages."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    python = folder / "bin" / "python"
    start = time.perf_counter()
    constraints = ROOT / "constraints.txt"
    run([python, "-m", "pip", "install", "--quiet", "-c", constraints, what], folder.parent)
    seconds = time.perf_counter() - start
    found = json.loads(run([python, "-c", LIST_PACKAGES], folder))
    megabytes = {name: size / 1e6 for name, (_, size) in found.items() if name not in TOOLS}
    return {
        "seconds": round(seconds, 1),
        "mb": round(sum(megabytes.values()), 1),
        "packages": {name: round(size, 1) for name, size in sorted(megabytes.items(), key=lambda x: -x[1])},
        "torch": found["torch"][0],
    }


def align_two_videos(program: Path, folder: Path) -> dict[str, Any]:
    """Render two videos and align them with an installed program; what it printed, as numbers."""
    run([program, "synth", "clips", "--videos", "2", "--json"], folder)
    first, second = sorted((folder / "clips").glob("*.mp4"))
    start = time.perf_counter()
    found = json.loads(run([program, "align", first, second, "-o", "matches.csv", "--json"], folder))
    seconds = time.perf_counter() - start
    rows = (folder / "matches.csv").read_text().count("\n") - 1
    return {"rows": rows, "mean_confidence": round(found["mean_confidence"], 3), "seconds": round(seconds, 1)}


def measure(folder: Path) -> dict[str, Any]:
    """Build, install and use the package in `folder`."""
    wheel = build_wheel(folder)
    files = zipfile.ZipFile(wheel).infolist()
    largest = sorted(files, key=lambda file: -file.compress_size)[:4]
    alone = install("torch", folder / "torch")
    ours = install(wheel, folder / "cycleback")
    start = time.perf_counter()
    run([folder / "torch" / "bin" / "python", "-W", "ignore", "-c", "import torch"], folder)
    import_seconds = time.perf_counter() - start
    aligned = align_two_videos(folder / "cycleback" / "bin" / "cycleback", folder)
    return {
        "commit": commit(),
        "wheel": {
            "mb": round(wheel.stat().st_size / 1e6, 2),
            "unpacked_mb": round(sum(file.file_size for file in files) / 1e6, 2),
            "largest": {file.filename: round(file.compress_size / 1e6, 2) for file in largest},
        },
        "torch alone": alone,
        "cycleback": ours,
        "ratio": {
            "size": round(ours["mb"] / alone["mb"], 2),
            "install time": round(ours["seconds"] / alone["seconds"], 2),
            "first alignment over import torch": round(aligned["seconds"] / import_seconds, 1),
        },
        "align": aligned,
    }


def show(result: dict[str, Any]) -> None:
    """Print the figures."""
    wheel, ours, alone = result["wheel"], result["cycleback"], result["torch alone"]
    print(f"wheel {wheel['mb']} MB, unpacked {wheel['unpacked_mb']} MB: {wheel['largest']}")
    print(f"environment {ours['mb']} MB in {ours['seconds']} s; torch {ours['torch']} alone {alone['mb']} MB")
    print(f"ratios to torch alone: {result['ratio']}")
    for name, size in list(ours["packages"].items())[:SHOWN]:
        print(f"  {name:<34} {size:8.1f} MB{'' if name in alone['packages'] else '  not part of torch'}")
    print(f"aligned: {result['align']}")


def main() -> None:
    """Measure, print, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(Path(folder).resolve())
    write_json(args.out, result, overwrite=True)
    show(result)


if __name__ == "__main__":
    main()
