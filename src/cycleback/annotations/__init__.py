"""Labels as people keep them: one value, and the file formats of the tools they come from and go to.

    name           tool                                     file
    csv            a spreadsheet, `labels.csv` of a data set  video,event,frame or seconds
    json           the project's own, keeps everything      .json
    activitynet    temporal action detection                .json
    elan           ELAN                                     .eaf, one a video
    label-studio   Label Studio                             .json
    via            VIA 3 (VGG Image Annotator)              .json
    boris          BORIS project                            .boris
    boris-events   BORIS, exported table of events          .csv, .tsv
    labelu         LabelU                                   .json, .jsonl
    frames         action segmentation                      .txt, one label a line, one file a video

A new format is one file with `read`, `write` and a `FORMAT`, and one word in `registry.MODULES`.
"""

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment
from cycleback.annotations.registry import FORMATS, read_annotations, write_annotations

__all__ = ["FORMATS", "Annotation", "Event", "Moment", "Segment", "read_annotations", "write_annotations"]
