"""The page that aligns two clips without a server: its formulas, its result, its limits.

It is tested as `make browser` builds it: docs/browser with onnxruntime-web and a network beside it.
"""

import base64
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cycleback.alignment import align
from cycleback.data import FrameCache, VideoRecord
from cycleback.embeddings.features import FusedFeatures
from cycleback.embeddings.stream_choice import find_mirrored, weigh_streams
from cycleback.models.streams import mirror, motion_vectors, stream_vectors
from cycleback.runs.folder import build_pretrained
from cycleback.video import write_video

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "build" / "browser"
SAME_PIXELS, ALIGNMENT = 2e-3, 1e-9  # of the root mean square; of a confidence
SAME_FILE = 0.3  # root mean square: browsers enlarge colours and shrink pictures in another way
COMPARE = """async ([a, b]) => {
  const {align} = await import("./align.js"), streams = await import("./streams.js");
  const toMatrix = (m) => ({rows: m.length, columns: m[0].length, data: Float64Array.from(m.flat())});
  const read = (video) => Object.fromEntries(Object.entries(video).map(([k, v]) => [k, toMatrix(v)]));
  const [one, other] = [read(a), read(b)];
  const turned = streams.isMirrored(
    {plain: one.motion, turned: toMatrix(a.motion.toReversed())},
    {plain: toMatrix(b.motion.toReversed()), turned: other.motion});
  const {indices, confidence, matched, path} = align(one.motion, other.motion);
  return {indices, confidence, matched, path, weights: streams.weighStreams(one, other), turned};
}"""

ALIGN = """async ([a, b]) => {
  const {align} = await import("./align.js");
  const toMatrix = (m) => ({rows: m.length, columns: m[0].length, data: Float64Array.from(m.flat())});
  const {indices, confidence} = align(toMatrix(a), toMatrix(b));
  return {indices, confidence};
}"""


@pytest.fixture(scope="module")
def driver() -> ModuleType:
    """The functions that serve the page and give it clips."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("browser_benchmark", ROOT / "benchmarks" / "browser.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.pop(0)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built page with the scripts as they are now."""
    if not (BUILT / "index.html").is_file():
        pytest.skip(f"no built page in {BUILT}; build it with: make browser (needs npm)")
    folder = tmp_path_factory.mktemp("site")
    for name in ("vendor", "model"):
        (folder / name).symlink_to(BUILT / name)
    for file in (ROOT / "docs" / "browser").iterdir():
        (folder / file.name).symlink_to(file)
    (folder / "icon.svg").symlink_to(BUILT / "icon.svg")
    return folder


@pytest.fixture(scope="module")
def page(site: Path, driver: ModuleType, browser: Any) -> Iterator[Any]:
    """The page, open; whatever it asks of another host, and any error, fails the test."""
    with driver.serve(site) as address:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        wrong: list[str] = []
        page.on("request", lambda asked: asked.url.startswith((address, "blob:")) or wrong.append(asked.url))
        page.on("request", lambda asked: asked.method == "GET" or wrong.append(asked.method))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.goto(f"{address}/index.html")
        yield page
        page.close()
        assert not wrong


def write_clip(path: Path, pace: float) -> Path:
    """A square goes right, then down, over a field of its own texture; `pace` bends its time."""
    field = np.random.default_rng(5).integers(60, 120, (96, 128, 3)).astype(np.uint8)
    images = []
    for share in np.linspace(0, 1, 45) ** pace:
        image = field.copy()
        across, along = min(share * 2, 1), max(share * 2 - 1, 0)
        top, left = int(12 + 50 * along), int(8 + 84 * across)
        image[top : top + 24, left : left + 24] = (230, 200, 40)
        images.append(image)
    write_video(path, images, fps=30)
    return path


def root_mean_square(ours: NDArray[Any], theirs: NDArray[Any]) -> float:
    return float(np.sqrt(((ours - theirs) ** 2).mean() / (theirs**2).mean()))


def as_rows(matrix: dict[str, Any]) -> NDArray[np.float64]:
    return np.array(matrix["data"]).reshape(matrix["rows"], matrix["columns"])


def test_the_same_pixels_give_the_same_vectors_as_python(page: Any, tmp_path: Path) -> None:
    """Frames that Python decoded go through the formulas, and through the network, of the page."""
    record = VideoRecord("a", write_clip(tmp_path / "a.mp4", 1.3))
    frames, base = (
        FrameCache(tmp_path / "cache", size=(112, 112)),
        build_pretrained(("appearance", "motion")).base,
    )
    features = FusedFeatures(frames, base)
    raw, times = features.load_raw(record), frames.load(record).times
    pixels = base64.b64encode(np.ascontiguousarray(frames.load(record).frames).tobytes()).decode()
    found = page.evaluate(
        """async ({pixels, times}) => {
          const streams = await import("./streams.js"), video = await import("./video.js");
          const bytes = Uint8Array.from(atob(pixels), letter => letter.charCodeAt(0)), size = 112 * 112 * 3;
          const images = times.map((_, n) => bytes.subarray(n * size, (n + 1) * size));
          const motion = streams.measureMotion(images.map(streams.toGrey), times);
          const means = await video.seeFrames(await video.loadNetwork(), images);
          const plain = (m) => ({rows: m.rows, columns: m.columns, data: Array.from(m.data)});
          return {
            appearance: plain(streams.appearanceVectors(means)),
            motion: plain(streams.motionVectors(motion, times)),
            turned: plain(streams.motionVectors(streams.mirrorMotion(motion), times)),
          };
        }""",
        {"pixels": pixels, "times": times.tolist()},
    )
    vectors = stream_vectors(raw, times)
    assert root_mean_square(as_rows(found["appearance"]), vectors["appearance"]) < SAME_PIXELS
    assert root_mean_square(as_rows(found["motion"]), vectors["motion"]) < SAME_PIXELS
    turned = motion_vectors(mirror(raw)["motion"], times)
    assert root_mean_square(as_rows(found["turned"]), turned) < SAME_PIXELS


@pytest.mark.parametrize("seed", range(4))
def test_the_same_vectors_give_the_same_alignment_as_python(page: Any, seed: int) -> None:
    """Random walks along one curve: with and without a lead-in, weighed and aligned by both."""
    chance = np.random.default_rng(seed)
    curve = np.cumsum(chance.normal(size=(60, 6)), axis=0)
    lead = curve[:1] + np.cumsum(chance.normal(size=(12 * (seed % 2), 6)), axis=0)[::-1]
    a = np.concatenate([lead, curve]) + chance.normal(scale=0.3, size=(60 + len(lead), 6))
    b = curve[np.sort(chance.integers(0, 60, 70))] + chance.normal(scale=0.3, size=(70, 6))
    noise = chance.normal(size=(len(a), 3))
    videos = [{"appearance": noise, "motion": a}, {"appearance": chance.normal(size=(70, 3)), "motion": b}]
    found = page.evaluate(
        COMPARE,
        [{name: values.tolist() for name, values in video.items()} for video in videos],
    )
    expected = align(a, b)
    assert found["indices"] == expected.indices.tolist() and found["matched"] == expected.matched.tolist()
    assert expected.path is not None and found["path"] == expected.path.tolist()
    np.testing.assert_allclose(found["confidence"], expected.confidence, atol=ALIGNMENT)
    weights = weigh_streams([{k: v.astype(np.float32) for k, v in video.items()} for video in videos])
    assert found["weights"] == pytest.approx(weights, abs=1.1e-3)
    small = [each.astype(np.float32) for each in (a, a[::-1], b[::-1], b)]
    assert found["turned"] and find_mirrored([(small[0], small[1]), (small[2], small[3])])[1]


def make_pair(kind: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Embeddings of two videos, for each way in which confidence is found."""
    chance = np.random.default_rng(0)
    walk = np.cumsum(chance.normal(size=(400, 6)), axis=0)
    pairs = {
        "long": (walk + 9 * chance.normal(size=walk.shape), walk[::2] + 9 * chance.normal(size=(200, 6))),
        "short": (walk[20:27], chance.normal(size=(10, 6))),
        "unlike": (walk[:90], chance.normal(size=(150, 6))),
        "equal": (walk, walk + 1e-15),  # but for rounding
        "collapsed": (walk[:40] * 0 + 0.1, walk[:50] * 0 + 0.1),
        "ruled out": (walk[[0, 399]].repeat(64, axis=0), walk[[399, 0]].repeat(64, axis=0)),
    }
    return pairs[kind]


def test_long_videos_have_the_same_part_in_common_as_in_python(page: Any) -> None:
    """So many frames that both halve the videos to find what they share."""
    chance = np.random.default_rng(1)
    walk = np.cumsum(chance.normal(size=(2101, 4)), axis=0)
    lead = np.cumsum(chance.normal(size=(301, 4)), axis=0) + 40  # somewhere else
    a, b = np.concatenate([lead, walk[:1800]]), walk[:2001] + 0.3 * chance.normal(size=(2001, 4))
    found, expected = page.evaluate(ALIGN, [a.tolist(), b.tolist()]), align(a, b)
    assert found["indices"] == expected.indices.tolist() and not expected.matched[:295].any()
    np.testing.assert_allclose(found["confidence"], expected.confidence, rtol=0, atol=ALIGNMENT)


@pytest.mark.parametrize("kind", ["long", "short", "unlike", "equal", "collapsed", "ruled out"])
def test_confidence_is_the_same_as_in_python(page: Any, kind: str) -> None:
    """Thinned, too short to be trusted less, not alike, certain, without any order, and with no warp left."""
    a, b = make_pair(kind)
    found, expected = page.evaluate(ALIGN, [a.tolist(), b.tolist()]), align(a, b)
    assert found["indices"] == expected.indices.tolist()
    np.testing.assert_allclose(found["confidence"], expected.confidence, rtol=0, atol=ALIGNMENT)


def test_two_files_are_aligned_and_play_in_step(page: Any, driver: ModuleType, tmp_path: Path) -> None:
    """The truth is known: both squares are at the same place at matched frames."""
    a, b = write_clip(tmp_path / "a.mp4", 0.8), write_clip(tmp_path / "b.mp4", 1.4)
    found = driver.align_in_page(page, a, b)
    shares = [np.linspace(0, 1, 45) ** pace for pace in (0.8, 1.4)]
    truth = np.abs(shares[1][None] - shares[0][:, None]).argmin(axis=1)
    errors = np.abs(truth - np.array(found["indices"]))
    assert np.median(errors[3:-3]) <= 1 and errors.max() <= 6
    page.locator("#scrub").fill("30")
    other = found["indices"][30]
    assert f"frame {other} of 45" in page.inner_text('.slot[data-side="1"] .place')
    assert "frame 30 of 45" in page.inner_text('.slot[data-side="0"] .place')
    page.keyboard.press("ArrowRight")
    assert "frame 31 of 45" in page.inner_text('.slot[data-side="0"] .place')
    page.click("#play")
    page.wait_for_selector('#play[aria-pressed="false"]', timeout=20_000)
    assert "frame 44 of 45" in page.inner_text('.slot[data-side="0"] .place')


def test_a_file_gives_nearly_the_vectors_of_python(page: Any, driver: ModuleType, tmp_path: Path) -> None:
    a, b = write_clip(tmp_path / "a.mp4", 1.0), write_clip(tmp_path / "b.mp4", 1.2)
    driver.align_in_page(page, a, b)
    frames, base = (
        FrameCache(tmp_path / "cache", size=(112, 112)),
        build_pretrained(("appearance", "motion")).base,
    )
    record = VideoRecord("a", a)
    vectors = stream_vectors(FusedFeatures(frames, base).load_raw(record), frames.load(record).times)
    for stream, expected in vectors.items():
        found = page.evaluate(f"Array.from(cycleback.videos[0].vectors.plain.{stream}.data)")
        assert root_mean_square(np.array(found).reshape(expected.shape), expected) < SAME_FILE


def test_what_is_no_video_is_said_in_one_line(page: Any, tmp_path: Path) -> None:
    (tmp_path / "notes.mp4").write_text("no video")
    page.reload()
    page.set_input_files('.slot[data-side="0"] input', str(tmp_path / "notes.mp4"))
    page.wait_for_selector("#message:not([hidden])")
    assert "notes.mp4 holds no video" in page.inner_text("#message")
    assert "Drop the first clip" in page.inner_text('.slot[data-side="0"]')


def test_the_page_allows_nothing_from_elsewhere(page: Any) -> None:
    policy = page.get_attribute('meta[http-equiv="Content-Security-Policy"]', "content")
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["connect-src"] == "'self'"
    assert rules["script-src"] == "'self' 'wasm-unsafe-eval'" and rules["form-action"] == "'none'"
    for file in (ROOT / "docs" / "browser").iterdir():
        assert "http://" not in file.read_text("utf-8") and "https://" not in file.read_text("utf-8"), file
