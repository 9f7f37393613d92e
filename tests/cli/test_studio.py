"""The command that opens the studio: what it prints, refuses, and how it ends."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

pytest.importorskip("fastapi", reason="needs the extra 'studio'")
pytest.importorskip("uvicorn", reason="needs the extra 'studio'")

RUN = "import sys; from cycleback.cli.main import main; sys.exit(main(sys.argv[1:]))"


def test_the_studio_tells_its_address_and_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    command = [sys.executable, "-c", RUN, "studio", str(tmp_path), "--no-browser", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            told = json.loads(process.stdout.readline())
            with urlopen(told["address"] + "api/project", timeout=10) as answer:
                (video,) = json.load(answer)["videos"]
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
        assert process.stderr.read() == ""
    assert told["folder"] == str(tmp_path) and told["videos"] == 1
    assert told["address"].startswith("http://127.0.0.1:") and video["name"] == "broken"


def test_what_is_no_folder_of_videos_is_refused(command, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("")
    refused = command("studio", str(tmp_path / "run"))
    assert refused.code == 2 and f"cycleback studio VIDEOS --run {tmp_path / 'run'}" in refused.err
    assert "is not a folder" in command("studio", str(tmp_path / "nowhere")).err
    assert "no run in" in command("studio", str(tmp_path), "--run", str(tmp_path / "nowhere")).err


def test_a_run_knows_where_its_videos_are(tmp_path: Path) -> None:
    from cycleback.cli.studio import find_videos

    (tmp_path / "run").mkdir()
    (tmp_path / "swings").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("")
    content = {"train": ["a"], "held_out": [], "folder": str(tmp_path / "swings")}
    (tmp_path / "run" / "videos.json").write_text(json.dumps(content))
    assert find_videos(tmp_path / "run", "pretrained") == (tmp_path / "swings", str(tmp_path / "run"))
    assert find_videos(tmp_path / "swings", "pretrained") == (tmp_path / "swings", "pretrained")


def test_a_taken_port_is_refused(command, tmp_path: Path) -> None:
    from cycleback.web.server import take_port

    with take_port("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        refused = command("studio", str(tmp_path), "--no-browser", "--port", str(port))
    assert refused.code == 2 and f"cannot listen at 127.0.0.1:{port}" in refused.err
    refused = command("studio", str(tmp_path), "--no-browser", "--host", "no such host")
    assert refused.code == 2 and "cannot listen at 'no such host'" in refused.err


def test_a_missing_package_is_named(command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    refused = command("studio", str(tmp_path))
    assert refused.code == 2
    assert refused.err == "error: the studio needs uvicorn: pip install 'cycleback[studio]'\n"
