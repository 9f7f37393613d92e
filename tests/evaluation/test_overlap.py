import pytest

from cycleback.data import sources
from cycleback.embeddings import EmbeddingSet
from cycleback.errors import EmbeddingError, UserError
from cycleback.evaluation import find_overlap, refuse_overlap
from cycleback.evaluation.overlap import Overlap


@pytest.fixture
def make(tmp_path):
    """An embedding set of files with the given contents, by name; None for a video without a file."""

    def make_set(part, contents):
        paths = {}
        for name, content in contents.items():
            if content is not None:
                paths[name] = tmp_path / f"{part}_{name}.mp4"
                paths[name].write_bytes(content)
        return EmbeddingSet.from_arrays({name: [[0.0]] for name in contents}, paths=paths)

    return make_set


def test_sets_with_nothing_in_common_pass(make):
    train, held_out = make("t", {"a": b"one", "b": None}), make("h", {"c": b"two", "d": None})
    refuse_overlap(find_overlap(train, held_out, persons={"a": "p1", "c": "p2"}))


def test_the_same_name_is_an_overlap(make):
    train, held_out = make("t", {"a": None, "b": None}), make("h", {"b": None, "c": None})
    assert find_overlap(train, held_out) == [Overlap("b", "b", "the same name")]


def test_a_copy_under_another_name_is_an_overlap(make):
    train, held_out = make("t", {"a": b"same", "b": b"same"}), make("h", {"c": b"same", "d": b"diff"})
    assert find_overlap(train, held_out) == [Overlap("a", "c", "the same file content")]


def test_the_same_person_is_an_overlap(make):
    train, held_out = make("t", {"a": None, "b": None}), make("h", {"c": None, "d": None})
    found = find_overlap(train, held_out, persons={"b": "ann", "c": "ann", "d": "ben"})
    assert found == [Overlap("b", "c", "the same person, ann", is_person=True)]


def test_the_error_names_the_first_pair_and_the_count(make):
    train = make("t", {"a": b"same", "b": None})
    held_out = make("h", {"b": None, "c": b"same"})
    message = r"'b' is also trained on \('b': the same name, and 1 more held-out videos too\)"
    with pytest.raises(EmbeddingError, match=message) as error:
        refuse_overlap(find_overlap(train, held_out))
    assert isinstance(error.value, UserError)


def test_only_files_of_equal_size_are_read(make, monkeypatch):
    read = []
    real = sources.file_digest
    monkeypatch.setattr(sources, "file_digest", lambda path: read.append(path.name) or real(path))
    find_overlap(make("t", {"a": b"1", "b": b"22"}), make("h", {"c": b"xx", "d": b"333"}))
    assert sorted(read) == ["h_c.mp4", "t_b.mp4"]


def test_files_that_are_gone_are_no_overlap(tmp_path):
    paths = {"a": tmp_path / "gone.mp4"}
    train = EmbeddingSet.from_arrays({"a": [[0.0]]}, paths=paths)
    held_out = EmbeddingSet.from_arrays({"b": [[0.0]]}, paths={"b": paths["a"]})
    assert find_overlap(train, held_out) == []
