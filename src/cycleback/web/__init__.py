"""The studio: a local web page on which alignments are seen, heard, used and corrected.

    project.py     a folder of videos, and the folder `.cycleback` in it for what the studio keeps
    uploads.py     videos that the page adds
    journal.py     what the user typed (labels, pins), append-only
    media.py       what a browser plays: media files, presentation times, thumbnails
    proxies.py     copies of videos that every browser plays
    sound.py       sound in blocks, and its peaks
    embedded.py    the embeddings of a project on disk
    matches.py     alignments of the videos of a project
    pins.py        frames that the user says belong together
    tiles.py       similarity of two videos as pictures
    labels.py      labels and the review queue; label_actions.py: labels as a function of what the user did;
                   label_filling.py: their transfer to other videos; label_files.py: label files
    explore.py     search, anomalies, map, progress, sound, phase strips
    jobs.py        embedding and training in processes of their own
    security.py    who may use the studio
    app.py         puts the routes together
    server.py      serves them at an address
    page/          plain JavaScript modules and CSS; no build step

A module that answers requests has a function `routes(studio)` that returns its part of the JSON API.
"""
