"""Build the page that aligns two clips in the browser.

    python scripts/build_browser.py -o build/browser

Copies docs/browser, takes onnxruntime-web from npm and mediabunny from the studio, and exports the network of
the stream `appearance`. The result is a folder of static files; the page fetches nothing from anywhere else.
Serve it with: python -m http.server -d build/browser
"""

import argparse
import base64
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from cycleback.export import export_onnx
from cycleback.files import atomic_folder

ROOT = Path(__file__).resolve().parents[1]
PAGE, STUDIO = ROOT / "docs" / "browser", ROOT / "src" / "cycleback" / "web" / "page"
PACKAGE = "onnxruntime-web@1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
NEEDED = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
SHIPPED = ("mediabunny.min.mjs", "mediabunny.LICENSE")
NOTICE = """onnxruntime-web 1.30.0, MIT License, Microsoft, https://onnxruntime.ai
mediabunny 1.61.0, Mozilla Public License 2.0, https://mediabunny.dev
  source: https://github.com/Vanilagy/mediabunny
model/base.onnx: EfficientNet-Lite0, Apache License 2.0, Google
"""


def main() -> int:
    """Build the page and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "browser")
    output = parser.parse_args().output
    if shutil.which("npm") is None:
        print("error: no npm, which fetches onnxruntime-web: apt-get install npm", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch, atomic_folder(output, overwrite=True) as draft:
        for file in PAGE.iterdir():
            shutil.copy(file, draft)
        shutil.copy(STUDIO / "icon.svg", draft)
        (draft / "vendor").mkdir()
        for name in SHIPPED:
            shutil.copy(STUDIO / "vendor" / name, draft / "vendor")
        fetch_runtime(draft / "vendor", Path(scratch))
        (draft / "vendor" / "NOTICE").write_text(NOTICE, "utf-8")
        (draft / "model").mkdir()
        export_onnx("pretrained", Path(scratch) / "model")
        for name in ("base.onnx", "model.json", "README.md"):
            shutil.copy(Path(scratch) / "model" / name, draft / "model")
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file()) / 1e6
    print(f"{size:.1f} MB of static files: {output}")
    print(f"next: python -m http.server -d {output}")
    return 0


def fetch_runtime(folder: Path, scratch: Path) -> None:
    """Put the files of onnxruntime-web that the page needs into `folder`; another package is refused."""
    subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    content = next(scratch.glob("onnxruntime-web-*.tgz")).read_bytes()
    found = base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != SHA512:
        raise SystemExit(f"error: {PACKAGE} from npm is not the known one (sha512-{found})")
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for name in NEEDED:
            stream = archive.extractfile(f"package/dist/{name}")
            if stream is None:
                raise SystemExit(f"error: {PACKAGE} has no dist/{name}")
            (folder / name).write_bytes(stream.read())


if __name__ == "__main__":
    sys.exit(main())
