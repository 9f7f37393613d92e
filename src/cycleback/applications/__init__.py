"""What an alignment is good for; everything here works on an EmbeddingSet.

    the paper (section 6, appendix)       here
    synchronous playback                  `smooth_pace` -> `write_synced`, or `write_edits` for other programs
    transfer of annotations               `transfer_labels` -> `TransferredLabels`
    transfer of sound                     `transfer_sound` -> `write_with_sound`
    anomaly detection                     `fit_typical` -> `Typical.score` -> `AnomalyScores`
    fine-grained retrieval                the package `cycleback.search`
    visualisation of the embedding        the package `cycleback.applications.plots`

    beyond the paper                      here
    a table of frames                     `alignment_rows` -> `cycleback.files.write_table`
    progress and reward                   `progress` -> `ProgressSignal`, `goal_of` -> `Goal.reward`
    an action that is still running       `Follower.push` -> `Position`

The names are loaded when first used, so that this import brings neither torch nor matplotlib.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "anomalies": ("AnomalyScores", "anomaly_rows"),
    "edit_decisions": ("write_edits",),
    "follower": ("Follower", "Position"),
    "label_files": ("labels_in_frames",),
    "label_transfer": ("TransferredLabels", "label_transfer_error", "transfer_labels"),
    "pace": ("Pace", "own_pace", "paths_of", "reference_pace", "smooth_pace"),
    "progress_signal": ("Goal", "ProgressSignal", "goal_of", "progress", "progress_rows"),
    "sound": ("TransferredSound", "transfer_sound"),
    "sound_track": ("write_with_sound",),
    "sync": ("write_synced",),
    "table": ("alignment_rows",),
    "typical": ("Typical", "fit_typical"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AnomalyScores",
    "Follower",
    "Goal",
    "Pace",
    "Position",
    "ProgressSignal",
    "TransferredLabels",
    "TransferredSound",
    "Typical",
    "alignment_rows",
    "anomaly_rows",
    "fit_typical",
    "goal_of",
    "label_transfer_error",
    "labels_in_frames",
    "own_pace",
    "paths_of",
    "progress",
    "progress_rows",
    "reference_pace",
    "smooth_pace",
    "transfer_labels",
    "transfer_sound",
    "write_edits",
    "write_synced",
    "write_with_sound",
]

if TYPE_CHECKING:
    from cycleback.applications.anomalies import AnomalyScores, anomaly_rows
    from cycleback.applications.edit_decisions import write_edits
    from cycleback.applications.follower import Follower, Position
    from cycleback.applications.label_files import labels_in_frames
    from cycleback.applications.label_transfer import TransferredLabels, label_transfer_error, transfer_labels
    from cycleback.applications.pace import Pace, own_pace, paths_of, reference_pace, smooth_pace
    from cycleback.applications.progress_signal import Goal, ProgressSignal, goal_of, progress, progress_rows
    from cycleback.applications.sound import TransferredSound, transfer_sound
    from cycleback.applications.sound_track import write_with_sound
    from cycleback.applications.sync import write_synced
    from cycleback.applications.table import alignment_rows
    from cycleback.applications.typical import Typical, fit_typical


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
