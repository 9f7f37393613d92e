"""The libraries that decode video: loaded when a file is first touched, never at import."""

from importlib import import_module
from types import ModuleType

from cycleback.errors import MissingDependencyError

# flags of libswscale; PyAV takes the numbers in every version, the names only in new ones
SWS_AREA = 0x20  # each new pixel is the mean of the old ones it covers
SWS_ACCURATE_RND = 0x40000
SWS_FULL_CHROMA = 0x2000 | 0x4000  # colour at full resolution on the way in and out


def load_av(purpose: str) -> ModuleType:
    """Import PyAV; `purpose` opens the message when it is missing."""
    try:
        return import_module("av")
    except ImportError as error:
        raise MissingDependencyError(f"{purpose} needs av: pip install av") from error


def converter_options(av: ModuleType) -> dict[str, int]:
    """Options of a VideoReformatter that keep colours true, and the best speed.

    The default flags make pictures 1 to 3 levels of 255 too dark. One thread: more of them cost small frames
    more than they gain; PyAV has the option, and without it uses all cores, since version 17.
    """
    flags = SWS_AREA | SWS_ACCURATE_RND | SWS_FULL_CHROMA
    threads = {"threads": 1} if int(av.__version__.split(".")[0]) >= 17 else {}
    return {"interpolation": flags, **threads}


def load_opencv() -> ModuleType | None:
    """OpenCV where PyAV is missing; None where PyAV can be used."""
    try:
        import_module("av")
        return None
    except ImportError as error:
        try:
            return import_module("cv2")
        except ImportError:
            raise MissingDependencyError("reading video needs av: pip install av") from error
