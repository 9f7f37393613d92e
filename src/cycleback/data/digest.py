"""Fingerprints of video files, so that a cached copy is found by content and not by name.

A file below 64 MiB is hashed whole. A larger one by its size, its time of change and three pieces of 4 MiB
(start, middle, end): reading all of it at every start would take longer than the cache saves. So a copy of a
small file is recognised; a copy of a large one only if it keeps the time of change.
"""

import hashlib
from pathlib import Path

from cycleback.data.image_folder import FPS_FILE, image_paths
from cycleback.data.records import VideoRecord
from cycleback.errors import DataError

WHOLE_FILE_BYTES = 64 * 2**20
PIECE_BYTES = 4 * 2**20


def record_digest(record: VideoRecord) -> str:
    """Fingerprint of a video's content; for a folder of images that of its images and frame rate."""
    try:
        return _folder_digest(record.path) if record.kind == "frames" else file_digest(record.path)
    except OSError as error:
        raise DataError(f"cannot read {record.path}: {error.strerror}.") from error


def file_digest(path: Path) -> str:
    """SHA-256 in hex over the content of a file, or over the pieces of a large one."""
    status = path.stat()
    with path.open("rb") as stream:
        if status.st_size < WHOLE_FILE_BYTES:
            return hashlib.file_digest(stream, "sha256").hexdigest()
        digest = hashlib.sha256(f"{status.st_size}/{status.st_mtime_ns}/".encode())
        for start in (0, (status.st_size - PIECE_BYTES) // 2, status.st_size - PIECE_BYTES):
            stream.seek(start)
            digest.update(stream.read(PIECE_BYTES))
    return digest.hexdigest()


def _folder_digest(folder: Path) -> str:
    """Over the names and contents of the images and of fps.txt."""
    digest = hashlib.sha256()
    for path in [*image_paths(folder), folder / FPS_FILE]:
        content = file_digest(path) if path.exists() else "-"
        digest.update(f"{path.name}/{content}/".encode())
    return digest.hexdigest()
