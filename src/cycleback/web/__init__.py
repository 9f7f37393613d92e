"""The studio: a local web page on which alignments are seen, heard, used and corrected.

    project.py     a folder of videos, and the folder `.cycleback` in it for what the studio keeps
    journal.py     what the user typed (labels, pins), append-only
    media.py       what a browser plays: media files, presentation times, thumbnails
    matches.py     embeddings, alignments and similarity of the videos of a project
    labels.py      labels, their transfer to other videos, and the review queue
    explore.py     search, anomalies, map, progress, sound, phase strips
    jobs.py        embedding and training in processes of their own
    app.py         puts their routes together, and refuses strangers
    page/          plain JavaScript modules and CSS; no build step

Each module has a function `routes(studio)` that returns its part of the JSON API.
"""
