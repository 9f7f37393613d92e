"""What an alignment is good for; everything here works on an `EmbeddingSet`.

    the paper (section 6, appendix)       here
    synchronous playback                  `smooth_pace` -> `write_synced`, or `write_edits` for other programs
    transfer of annotations               `match_labels` -> `transfer_labels` -> `TransferredLabels`
    transfer of sound                     `transfer_sound` -> `write_with_sound`
    anomaly detection                     `find_anomalies` -> `AnomalyReport`
    fine-grained retrieval                the package `cycleback.search`
    visualisation of the embedding        the package `cycleback.applications.plots`

    beyond the paper                      here
    two cameras of one event              `find_offset` -> `OffsetReport` -> `pace_by_offset`
    tables of frames                      `tabulate_alignment`, `tabulate_clock`, `locate_part`
    progress and reward                   `measure_progress` -> `ProgressReport`
    what comes early or late              `measure_timing` -> `TimingReport`
    whether a result can be trusted       `judge` -> `Verdict`
    repetitions of an action              `find_repetitions` -> `Repetitions`, and `write_clips` to cut them
    an action in a long recording         `find_action` -> `Occurrences`, and `cut_clips` to cut them
    fatigue over repetitions              `measure_drift` -> `Drift`
    repetitions as takes                  `split_takes` -> an `EmbeddingSet` for all of the above
    an action that is still running       `build_follower` -> `follow_stream` -> `Position`

Importing this package loads neither torch nor matplotlib.
"""

from cycleback.applications.anomalies import AnomalyReport, compare_takes, find_anomalies
from cycleback.applications.clips import cut_clips
from cycleback.applications.drift import Drift, measure_drift
from cycleback.applications.edits import write_edits
from cycleback.applications.find import Occurrence, Occurrences, find_action, find_occurrences
from cycleback.applications.labels import (
    TransferredLabels,
    join_takes,
    label_transfer_error,
    match_labels,
    transfer_labels,
)
from cycleback.applications.live import Follower, Position, build_follower, follow_stream
from cycleback.applications.offsets import (
    OffsetReport,
    find_offset,
    match_by_offset,
    pace_by_offset,
    read_clocks,
)
from cycleback.applications.pace import Pace, keep_own_pace, locate_videos, match_reference, smooth_pace
from cycleback.applications.progress import ProgressReport, measure_progress
from cycleback.applications.repetitions import Repetitions, find_repetitions, split_takes, write_clips
from cycleback.applications.sound import transfer_sound, transfer_sound_of_takes, write_with_sound
from cycleback.applications.sync import write_synced
from cycleback.applications.tables import locate_part, tabulate_alignment, tabulate_clock
from cycleback.applications.timing import TimingReport, measure_timing
from cycleback.applications.verdict import Verdict, judge

__all__ = [
    "AnomalyReport",
    "Drift",
    "Follower",
    "Occurrence",
    "Occurrences",
    "OffsetReport",
    "Pace",
    "Position",
    "ProgressReport",
    "Repetitions",
    "TimingReport",
    "TransferredLabels",
    "Verdict",
    "build_follower",
    "compare_takes",
    "cut_clips",
    "find_action",
    "find_anomalies",
    "find_occurrences",
    "find_offset",
    "find_repetitions",
    "follow_stream",
    "join_takes",
    "judge",
    "keep_own_pace",
    "label_transfer_error",
    "locate_part",
    "locate_videos",
    "match_by_offset",
    "match_labels",
    "match_reference",
    "measure_drift",
    "measure_progress",
    "measure_timing",
    "pace_by_offset",
    "read_clocks",
    "smooth_pace",
    "split_takes",
    "tabulate_alignment",
    "tabulate_clock",
    "transfer_labels",
    "transfer_sound",
    "transfer_sound_of_takes",
    "write_clips",
    "write_edits",
    "write_synced",
    "write_with_sound",
]
