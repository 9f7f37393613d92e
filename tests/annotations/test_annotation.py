import pytest

from cycleback.annotations import Annotation, Moment
from cycleback.annotations.annotation import video_name
from cycleback.errors import DataError


def test_a_moment_without_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="a moment needs seconds or a frame"):
        Moment()


def test_frames_and_seconds_are_told_by_the_frame_rate() -> None:
    video = Annotation("a", fps=25, num_frames=100)
    assert video.seconds(Moment(frame=50)) == 2.0 and video.frame(Moment(2.01)) == 50
    assert (video.length_s, video.frame_s) == (4.0, 0.04)


def test_what_was_written_down_counts_more_than_the_rate() -> None:
    video, both = Annotation("a", fps=25), Moment(2.5, 50)
    assert (video.seconds(both), video.frame(both)) == (2.5, 50)


def test_without_a_rate_only_the_start_is_the_same() -> None:
    video = Annotation("a")
    assert video.seconds(Moment(frame=0)) == 0.0 and video.frame(Moment(0.0)) == 0
    with pytest.raises(DataError, match=r"a: 1.5 s has no frame, because the frame rate is unknown"):
        video.frame(Moment(1.5))


@pytest.mark.parametrize(
    "written",
    ["a.mp4", "x/y/a.mp4", r"C:\videos\a.mp4", "/data/local-files/?d=up/a.mp4", "http://h/a.mp4?t=1", "a"],
)
def test_the_name_of_a_video_is_the_last_part_of_its_address(written: str) -> None:
    assert video_name(written) == "a"
