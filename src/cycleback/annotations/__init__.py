"""Read and write labels of videos in the file formats of annotation tools.

    name           tool                                       file
    csv            a spreadsheet, `labels.csv` of a dataset   video,event,frame or seconds
    json           this package; keeps everything             .json
    activitynet    temporal action detection                  .json
    elan           ELAN                                       .eaf, one per video
    label-studio   Label Studio                               .json
    via            VIA 3 (VGG Image Annotator)                .json
    boris          BORIS project                              .boris
    boris-events   BORIS, exported table of events            .csv, .tsv
    labelu         LabelU                                     .json, .jsonl
    frames         action segmentation                        .txt, one line per frame, one file per video

To add a format, write a function that reads it and one that writes it, and add a line to `formats.FORMATS`.
"""

from cycleback.annotations.annotation import Annotation, Event, Moment, Segment
from cycleback.annotations.formats import FORMATS, read_annotations, write_annotations

__all__ = ["FORMATS", "Annotation", "Event", "Moment", "Segment", "read_annotations", "write_annotations"]
