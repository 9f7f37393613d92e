import subprocess
import sys

import cycleback.data


def test_every_public_name_is_there() -> None:
    assert sorted(cycleback.data.__all__) == sorted(set(cycleback.data.__all__))
    for name in cycleback.data.__all__:
        assert callable(getattr(cycleback.data, name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(cycleback.data, "nothing")


def test_reading_a_folder_needs_neither_torch_nor_a_video_library() -> None:
    code = "import cycleback.data, sys; print(sorted({'torch', 'av', 'cv2', 'PIL'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
