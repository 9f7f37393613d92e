import json
import os

import numpy as np
import pytest

from cycleback.embeddings import EmbeddingSet, check_one_action, check_same_encoder
from cycleback.errors import DataError, EmbeddingError, OutputExistsError, UserError
from cycleback.reading import seal

LENGTHS = {"a": 4, "b/long": 6, "c": 5}


def numbered(lengths: dict[str, int] = LENGTHS, size: int = 3) -> dict[str, np.ndarray]:
    """Embeddings whose numbers tell video, frame and channel apart."""
    return {
        name: 100.0 * video + 10.0 * np.arange(length)[:, None] + np.arange(size)
        for video, (name, length) in enumerate(lengths.items())
    }


def labelled() -> EmbeddingSet:
    return EmbeddingSet.from_arrays(
        numbered(),
        times={"c": [0.0, 0.1, 0.3, 0.6, 1.0]},
        events={"a": {"touch": 1, "pour": 3}, "b/long": {"pour": 0}},
        paths={"a": "clips/a.mp4"},
        fps={"a": 25, "b/long": 50.0},
        encoder="abc123",
        streams={"motion": 1.0},
        mirrored={"c", "b/long"},
        event_names=["touch", "pour"],
    )


@pytest.fixture
def folder(tmp_path):
    return labelled().save(tmp_path / "set")


def test_arrays_come_back_by_name_as_float32():
    videos = labelled()
    assert videos.names == ("a", "b/long", "c") and len(videos) == 3 and "c" in videos
    for name, array in numbered().items():
        assert videos[name].dtype == np.float32
        np.testing.assert_array_equal(videos[name], array)
    assert (videos.size, videos.num_frames) == (3, 15)
    assert repr(videos) == "EmbeddingSet(3 videos, 15 frames, D=3)"


def test_times_and_rates_follow_from_each_other():
    videos = labelled()
    np.testing.assert_allclose(videos.times("a"), [0, 0.04, 0.08, 0.12])
    assert videos.fps("b/long") == 50.0
    assert videos.fps("c") == pytest.approx(4.0)


def test_without_times_or_rate_the_rate_stays_unknown():
    videos = EmbeddingSet.from_arrays({"a": np.ones((3, 2))})
    assert videos.fps("a") is None
    np.testing.assert_allclose(videos.times("a"), [0, 1 / 30, 2 / 30])


def test_phase_is_the_number_of_events_at_or_before_a_frame():
    videos = labelled()
    assert videos.phases("a").tolist() == [0, 1, 1, 2]
    assert videos.phases("b/long") is None
    assert videos.phases("c") is None


def test_phases_count_the_events_of_the_videos_own_action():
    videos = EmbeddingSet.from_arrays(
        {name: np.zeros((3, 1)) for name in "abc"},
        events={"a": {"top": 1}, "b": {"serve": 1, "hit": 2}, "c": {"hit": 2}},
        actions={"a": "golf", "b": "tennis", "c": "tennis"},
    )
    assert videos.event_names == ("top", "serve", "hit")
    assert videos.phases("a").tolist() == [0, 1, 1]
    assert videos.phases("b").tolist() == [0, 1, 2]
    assert videos.phases("c") is None
    assert videos.subset(["c"]).phases("c") is None


def test_a_set_cannot_be_changed():
    videos = labelled()
    with pytest.raises(ValueError, match="read-only"):
        videos["a"][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        videos.times("a")[0] = 1
    videos.events("a")["touch"] = 3
    assert videos.events("a") == {"touch": 1, "pour": 3}


def test_the_callers_array_stays_the_callers():
    array = np.zeros((2, 2), dtype=np.float32)
    videos = EmbeddingSet.from_arrays({"a": array})
    array[:] = 7
    assert videos["a"].max() == 0


def test_save_and_load_keep_everything(folder):
    saved, loaded = labelled(), EmbeddingSet.load(folder)
    assert (loaded.names, loaded.event_names, loaded.encoder) == (saved.names, saved.event_names, "abc123")
    assert (loaded.streams, loaded.mirrored) == ({"motion": 1.0}, ("b/long", "c"))
    for name in saved:
        np.testing.assert_array_equal(loaded[name], saved[name])
        np.testing.assert_array_equal(loaded.times(name), saved.times(name))
        assert loaded.events(name) == saved.events(name)
        assert (loaded.action(name), loaded.path(name), loaded.fps(name)) == (
            saved.action(name), saved.path(name), saved.fps(name)
        )  # fmt: skip
    np.testing.assert_array_equal(loaded.phases("a"), saved.phases("a"))


def test_loading_memory_maps_the_embeddings(folder):
    assert isinstance(EmbeddingSet.load(folder)._embeddings, np.memmap)


def test_the_files_are_plain_arrays(folder):
    assert sorted(os.listdir(folder)) == ["embeddings.npy", "index.json", "phases.npy", "times.npy"]
    assert np.load(folder / "embeddings.npy").shape == (15, 3)
    assert np.load(folder / "phases.npy").tolist() == [0, 1, 1, 2] + [-1] * 11
    assert json.loads((folder / "index.json").read_text())["videos"][1]["start"] == 4


def test_unlabelled_videos_have_no_phases_file(tmp_path):
    folder = EmbeddingSet.from_arrays(numbered()).save(tmp_path / "set")
    assert "phases.npy" not in os.listdir(folder)
    assert EmbeddingSet.load(folder).phases("a") is None


def test_a_subset_keeps_its_order_and_saves_only_itself(tmp_path, folder):
    part = EmbeddingSet.load(folder).subset(["c", "a"])
    assert part.names == ("c", "a") and part.num_frames == 9 and part.mirrored == ("c",)
    again = EmbeddingSet.load(part.save(tmp_path / "part"))
    np.testing.assert_array_equal(again["c"], numbered()["c"])
    np.testing.assert_array_equal(again.times("a"), labelled().times("a"))
    assert np.load(tmp_path / "part" / "embeddings.npy").shape == (9, 3)


def test_an_existing_folder_is_not_overwritten_unasked(folder):
    with pytest.raises(OutputExistsError, match="set exists"):
        labelled().save(folder)


def test_a_set_can_overwrite_the_folder_it_was_loaded_from(folder):
    EmbeddingSet.load(folder).subset(["c"]).save(folder, overwrite=True)
    assert EmbeddingSet.load(folder).names == ("c",)
    assert os.listdir(folder.parent) == ["set"]


def test_overwriting_spares_a_folder_that_is_no_embedding_set(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputExistsError, match=r"has no index\.json, so this program did not make it"):
        labelled().save(tmp_path, overwrite=True)
    assert (tmp_path / "thesis.tex").exists()


def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch):
    def full_disk(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cycleback.embeddings.embedding_set.write_index", full_disk)
    with pytest.raises(UserError, match="set: No space left on device"):
        labelled().save(tmp_path / "set")
    assert os.listdir(tmp_path) == []


def test_an_unknown_video_is_an_error_with_a_guess():
    with pytest.raises(EmbeddingError, match=r"no video 'b/lnog'\. Did you mean 'b/long'\?"):
        labelled()["b/lnog"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"times": {"aa": [0]}}, "times of 'aa', which has no embeddings"),
        ({"events": {"b/lon": {}}}, "Did you mean 'b/long'"),
        ({"times": {"a": [0, 1]}}, r"a: times must be \(4,\), one per frame, got \(2,\)"),
        ({"times": {"a": [0, 2, 1, 3]}}, "a: times must be finite seconds that never decrease"),
        ({"fps": 0}, "a: fps must be positive, got 0"),
        ({"events": {"a": {"touch": 4}}}, r"a: key event 'touch' at frame 4, but the video has 4 frames"),
        ({"events": {"a": {"touch": -1}}}, "'touch' at frame -1"),
        ({"events": {"a": {"touch": 1.5}}}, "'touch' at 1.5, expected a frame number"),
        ({"events": {"a": {"tuch": 1}}, "event_names": ["touch"]}, "'tuch'. Did you mean 'touch'"),
    ],
)
def test_what_does_not_fit_the_videos_is_refused(settings, message):
    with pytest.raises(EmbeddingError, match=message):
        EmbeddingSet.from_arrays(numbered(), **settings)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_embeddings_that_are_not_finite_are_refused_by_name(value):
    arrays = numbered()
    arrays["c"][2, 1] = value
    with pytest.raises(EmbeddingError, match=r"c: 1 of 5 frames .* not finite \(first: frame 2\)"):
        EmbeddingSet.from_arrays(arrays)


@pytest.mark.parametrize("shape", [(0, 3), (4,), (2, 2, 2), (3, 0)])
def test_wrong_shapes_are_refused(shape):
    with pytest.raises(EmbeddingError, match=f"bad: embeddings must be .*{str(shape)[1:-1]}"):
        EmbeddingSet.from_arrays({"bad": np.zeros(shape)})


def test_different_embedding_sizes_are_refused():
    with pytest.raises(EmbeddingError, match="b has embeddings of size 3, but a of size 2"):
        EmbeddingSet.from_arrays({"a": np.zeros((1, 2)), "b": np.zeros((1, 3))})


def test_no_videos_are_refused():
    with pytest.raises(EmbeddingError, match="at least one video"):
        EmbeddingSet.from_arrays({})


def test_a_subset_takes_each_video_once():
    with pytest.raises(ValueError, match="got 'a' twice"):
        labelled().subset(["a", "c", "a"])


def test_other_embeddings_keep_times_and_labels():
    part = labelled().subset(["c", "a"])
    other = part.with_embeddings({"a": np.zeros((4, 1)), "c": np.ones((5, 1))}, encoder="ones")
    assert (other.names, other.size, other.encoder) == (("c", "a"), 1, "ones")
    assert (other.streams, other.mirrored) == ({}, ())
    assert other["c"].min() == 1 and other.events("a") == labelled().events("a")
    np.testing.assert_array_equal(other.times("c"), labelled().times("c"))


def test_other_embeddings_must_fit_the_frames():
    with pytest.raises(EmbeddingError, match="a: 3 embeddings for 4 frames"):
        labelled().with_embeddings(numbered({"a": 3, "b/long": 6, "c": 5}))


@pytest.mark.parametrize("name", ["index.json", "embeddings.npy", "times.npy"])
def test_a_missing_file_is_one_clear_line(folder, name):
    (folder / name).unlink()
    with pytest.raises(EmbeddingError, match=name) as caught:
        EmbeddingSet.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["index.json", "embeddings.npy", "times.npy"])
@pytest.mark.parametrize("content", [b"", b"\x80\x00garbage"])
def test_a_damaged_file_is_one_clear_line(folder, name, content):
    (folder / name).write_bytes(content)
    with pytest.raises(EmbeddingError, match=name) as caught:
        EmbeddingSet.load(folder)
    assert "\n" not in str(caught.value)


def test_a_truncated_array_is_an_error(folder):
    content = (folder / "embeddings.npy").read_bytes()
    (folder / "embeddings.npy").write_bytes(content[:-8])
    with pytest.raises(EmbeddingError, match=r"embeddings.npy: it is damaged"):
        EmbeddingSet.load(folder)


@pytest.mark.parametrize("array", [np.zeros((15, 3)), np.zeros(15, dtype=np.float32)])
def test_an_array_of_another_kind_is_an_error(folder, array):
    np.save(folder / "embeddings.npy", array)
    with pytest.raises(EmbeddingError, match="expected float32 with 2 dimensions, got float"):
        EmbeddingSet.load(folder)


def test_pickles_are_not_opened(folder):
    np.save(folder / "times.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(EmbeddingError, match=r"times.npy: expected float64 with 1 dimension, got object"):
        EmbeddingSet.load(folder)


def test_arrays_of_another_length_are_an_error(folder):
    np.save(folder / "times.npy", np.zeros(14))
    with pytest.raises(EmbeddingError, match="15 embeddings and 14 times for 15 frames"):
        EmbeddingSet.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "not the index of an embedding set"),
        ({"version": 2}, "format version 2, this program reads 1"),
        ({"videos": []}, "missing, doubled or overlap"),
        ({"videos": [{"name": "a", "start": 0, "length": 4}] * 2}, "missing, doubled or overlap"),
        ({"videos": [{"name": "a", "start": 3, "length": 4}]}, "missing, doubled or overlap"),
        ({"videos": [{"title": "a"}]}, r"videos\[0\]: no 'name' here"),
        ({"event_names": 3}, "event_names: expected a list, got 3"),
    ],
)
def test_a_foreign_or_damaged_index_is_an_error(folder, change, message):
    index = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps(seal(index | change)))
    with pytest.raises(EmbeddingError, match=message):
        EmbeddingSet.load(folder)


@pytest.mark.parametrize("name", ["index.json", "embeddings.npy", "times.npy"])
def test_a_flipped_byte_is_noticed_or_changes_nothing(folder, name):
    content, saved = (folder / name).read_bytes(), labelled()
    for place in range(0, len(content), 1 if name != "index.json" else 3):
        flipped = bytearray(content)
        flipped[place] ^= 1
        (folder / name).write_bytes(flipped)
        try:
            loaded = EmbeddingSet.load(folder)
            for video in saved:
                np.testing.assert_array_equal(loaded[video], saved[video])
                np.testing.assert_array_equal(loaded.times(video), saved.times(video))
            assert loaded._index.to_json() == saved._index.compact().to_json()
        except EmbeddingError as error:
            assert "\n" not in str(error)
        else:
            assert name == "index.json" or place < 128  # white space, or another way to write the type


def test_a_set_without_checksums_must_be_finite(folder):
    """As of version 0.2.0."""
    index = json.loads((folder / "index.json").read_text())
    old = {key: value for key, value in index.items() if "checksum" not in key}
    (folder / "index.json").write_text(json.dumps(old))
    assert EmbeddingSet.load(folder)["c"].shape == (5, 3)
    rows = np.load(folder / "embeddings.npy")
    rows[12, 1] = np.nan
    np.save(folder / "embeddings.npy", rows)
    loaded = EmbeddingSet.load(folder).subset(["a", "c"])
    assert loaded["a"].shape == (4, 3)
    with pytest.raises(EmbeddingError, match=r"embeddings\.npy: c has embeddings that are not finite"):
        loaded["c"]


@pytest.mark.parametrize("times", [[0, 2, 1, 3], [0, 1, np.nan, 3], [0, 1, 2, np.inf]])
def test_times_that_fall_are_an_error(folder, times):
    index = json.loads((folder / "index.json").read_text())
    del index["times_checksum"], index["checksum"]
    (folder / "index.json").write_text(json.dumps(index))
    clock = np.load(folder / "times.npy")
    clock[:4] = times
    np.save(folder / "times.npy", clock)
    with pytest.raises(EmbeddingError, match=r"times\.npy: times must be finite seconds that never decrease"):
        EmbeddingSet.load(folder)


def test_no_folder_says_how_to_make_one(tmp_path):
    with pytest.raises(EmbeddingError, match=r"no embedding set in .*nowhere .* cycleback embed"):
        EmbeddingSet.load(tmp_path / "nowhere")


def test_what_each_encoder_made_is_named() -> None:
    with pytest.raises(EmbeddingError, match=r"compared: golf\.emb by a1, the videos by b2\. Embed all with"):
        check_same_encoder({"golf.emb": "a1", "the videos": "b2"})


def test_one_encoder_and_unknown_ones_are_fine() -> None:
    check_same_encoder({"golf.emb": "a1", "the videos": "a1", "old": None})
    check_same_encoder({"old": None})


def test_videos_of_two_actions_are_refused_where_their_actions_are_known() -> None:
    arrays = {name: np.ones((2, 1)) for name in "ab"}
    one, other = (EmbeddingSet.from_arrays(arrays, actions=dict.fromkeys("ab", x)) for x in ("pour", "golf"))
    check_one_action(one, one, EmbeddingSet.from_arrays(arrays))
    with pytest.raises(DataError, match="b shows 'pour' and b shows 'golf': pass videos of the same action"):
        check_one_action(one, other)


def test_parts_of_a_video_know_where_they_begin_in_it(tmp_path) -> None:
    whole = labelled()
    parts = whole.cut({"b#1": ("b/long", 1, 4), "b#2": ("b/long", 4, 6), "a": ("a", 0, 4)})
    assert parts.names == ("b#1", "b#2", "a")
    assert parts["b#2"].tolist() == whole["b/long"][4:6].tolist()
    assert parts.times("b#2").tolist() == whole.times("b/long")[4:6].tolist()
    assert [parts.first_frame(name) for name in parts] == [1, 4, 0]
    assert [parts.source(name) for name in parts] == ["b/long", "b/long", "a"]
    assert parts.events("a") == {"touch": 1, "pour": 3} and parts.events("b#1") == {}
    assert parts.mirrored == ("b#1", "b#2")
    again = EmbeddingSet.load(parts.save(tmp_path / "parts"))
    assert again.first_frame("b#2") == 4 and again.source("b#2") == "b/long" and again.source("a") == "a"
    assert again["b#2"].tolist() == parts["b#2"].tolist() and again.times("b#2")[0] == parts.times("b#2")[0]
    deeper = parts.cut({"x": ("b#2", 1, 2)})
    assert deeper.first_frame("x") == 5 and deeper.source("x") == "b/long"


def test_a_part_beyond_the_video_is_refused() -> None:
    with pytest.raises(ValueError, match="a has 4 frames and no part from 2 to 5"):
        labelled().cut({"a#1": ("a", 2, 5)})
