"""The sound of a video being written, handed to the encoder in step with the pictures."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cycleback.video.audio import Audio, to_frame

AAC_RATES = (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000)
LAYOUTS = {1: "mono", 2: "stereo", 3: "3.0", 4: "4.0", 5: "5.0", 6: "5.1"}
FALLBACK_RATE = 48000  # for sample rates AAC does not know


class SoundTrack:
    """An AAC stream of `container` fed from `audio`; silence follows where the sound ends."""

    def __init__(self, container: Any, audio: Audio) -> None:
        channels = audio.samples.shape[0]
        if channels not in LAYOUTS:
            raise ValueError(f"audio must have 1 to {max(LAYOUTS)} channels, got {channels}")
        if not np.isfinite(audio.samples).all():
            raise ValueError("audio samples must be finite, got NaN or infinity")
        self.audio = audio
        self.position = 0  # samples already handed over
        self.container = container
        rate = audio.rate if audio.rate in AAC_RATES else FALLBACK_RATE
        self.stream = container.add_stream("aac", rate=rate, layout=LAYOUTS[channels])

    def write_until(self, seconds: Fraction) -> None:
        """Encode all sound before `seconds` that is not encoded yet."""
        end = round(seconds * self.audio.rate)
        if end <= self.position:
            return
        samples = self._samples(self.position, end)
        layout = LAYOUTS[samples.shape[0]]
        frame = to_frame(samples, layout=layout, rate=self.audio.rate, start=self.position)
        self.position = end
        self.container.mux(self.stream.encode(frame))

    def finish(self) -> None:
        """Encode what the encoder still holds."""
        self.container.mux(self.stream.encode(None))

    def _samples(self, start: int, end: int) -> NDArray[np.float32]:
        """Samples (channels, end - start), clipped to [-1, 1]; silence past the end."""
        part = np.clip(self.audio.samples[:, start:end], -1.0, 1.0)
        missing = end - start - part.shape[1]
        return np.ascontiguousarray(np.pad(part, ((0, 0), (0, missing))), dtype=np.float32)
