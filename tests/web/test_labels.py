"""Labels of a project: what follows from the actions of the user, and what is carried over to others."""

import base64
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient

from cycleback.annotations import FORMATS
from cycleback.applications import transfer_labels
from cycleback.errors import DataError
from cycleback.web.app import Studio, build_app
from cycleback.web.journal import Journal
from cycleback.web.label_actions import ACTIONS, LabelState, replay
from cycleback.web.project import Project, video_id
from takes import PACES, embed_takes, true_events, write_takes

A, B, C, D, E = map(video_id, PACES)
WAIT_S = 60.0


@pytest.fixture(scope="module")
def takes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five takes with embeddings; do not write to it."""
    return write_takes(tmp_path_factory.mktemp("takes")).folder


@pytest.fixture
def folder(takes: Path, tmp_path: Path) -> Path:
    """A copy of the takes for one test."""
    return Path(shutil.copytree(takes, tmp_path / "takes"))


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1") as client:
        yield client


def act(client: Any, type: str, *, status: int = 200, revision: int | None = None, **values: Any) -> Any:
    """Do one action with the latest revision, and return the answer."""
    known = client.get("/api/labels").json()["revision"] if revision is None else revision
    step = {"revision": known, "key": os.urandom(8).hex(), "action": {"type": type, **values}}
    answer = client.post("/api/labels", json=step)
    assert answer.status_code == status, answer.text
    return answer.json()


def mark(client: Any, id: str) -> None:
    """Label the key events of a take as they are."""
    name = {video_id(name): name for name in PACES}[id]
    for event, frame in true_events(name).items():
        act(client, "set_event", video=id, name=event, frame=frame)


def settle(client: Any) -> Any:
    """Wait until the suggestions are up to date, and return all labels."""
    end = time.monotonic() + WAIT_S
    while (labels := client.get("/api/labels").json())["is_updating"]:
        assert time.monotonic() < end, "the suggestions are never ready"
        time.sleep(0.02)
    return labels


def frames_of(labels: Any, id: str) -> dict[str, int]:
    video = next(each for each in labels["videos"] if each["id"] == id)
    return {event["name"]: event["frame"] for event in video["events"]}


def state_of(labels: Any) -> dict[str, str]:
    return {each["id"]: each["state"] for each in labels["videos"]}


def play(*actions: dict[str, Any], given: Any = None) -> LabelState:
    return replay([ACTIONS.validate_python(action) for action in actions], given)


def event(video: str, name: str, frame: int, **more: Any) -> dict[str, Any]:
    return {"type": "set_event", "video": video, "name": name, "frame": frame, **more}


def test_labels_follow_from_the_actions_alone() -> None:
    span = {"id": "s1", "name": "hold", "start": 3, "end": 9}
    actions = [
        event("v", "top", 5),
        event("v", "top", 7),
        {"type": "set_segment", "video": "v", "segment": span},
        {"type": "set_segment", "video": "v", "segment": {**span, "end": 8}},
        {"type": "rename", "kind": "event", "name": "top", "new_name": "peak"},
        event("w", "low", 1),
        {"type": "delete_event", "video": "w", "name": "low"},
    ]
    state = play(*actions)
    assert state.videos["v"].state == "labelled" and dict(state.videos["v"].events) == {"peak": 7}
    assert [(each.start, each.end) for each in state.videos["v"].segments.values()] == [(3, 8)]
    assert "w" not in state.videos  # its only label is gone
    assert state.names == (("event", "peak"), ("segment", "hold"), ("event", "low"))
    assert play(*actions) == state


def test_undo_and_redo_lead_to_the_states_that_were_there() -> None:
    actions = [
        event("v", "top", 5),
        {"type": "accept", "video": "w", "events": {"top": 2}},
        {"type": "skip", "video": "x"},
        {"type": "clear", "video": "v"},
        {"type": "import", "videos": [{"video": "v", "events": {"low": 1}}]},
    ]
    undo, redo = {"type": "undo"}, {"type": "redo"}
    states = [play(*actions[:count]) for count in range(len(actions) + 1)]
    for back in range(1, len(actions) + 1):
        undone = play(*actions, *[undo] * back)
        assert undone.videos == states[-1 - back].videos and undone.skipped == states[-1 - back].skipped
        assert play(*actions, *[undo] * back, *[redo] * back) == states[-1]
    assert play(*actions, undo, event("v", "top", 9), redo) == play(*actions[:-1], event("v", "top", 9))
    assert play(undo, redo, undo) == play()


def test_a_draft_does_not_vote_until_it_is_accepted() -> None:
    nudge = event("w", "top", 4, is_draft=True)
    refuse = {"type": "delete_event", "video": "w", "name": "low", "is_draft": True}
    state = play(event("v", "top", 5), nudge, refuse)
    assert state.videos["w"].state == "draft" and list(state.voters) == ["v"]
    needed = [name for name in ("top", "low", "end") if state.videos["w"].needs("event", name, name)]
    assert needed == ["end"]
    accepted = play(event("v", "top", 5), nudge, {"type": "accept", "video": "w", "events": {"top": 4}})
    assert list(accepted.voters) == ["v", "w"]


def test_labels_of_the_data_set_are_the_start() -> None:
    state = play(event("v", "top", 6), given={"v": {"top": 5, "low": 9}, "w": {"top": 1}})
    assert {id: own.state for id, own in state.videos.items()} == {"v": "labelled", "w": "given"}
    assert dict(state.videos["v"].events) == {"top": 6, "low": 9}


def test_given_labels_in_frames_and_in_seconds(folder: Path) -> None:
    for text in ("video,event,frame\na,lift,14\n", "video,event,seconds\na.mp4,lift,0.4667\n"):
        (folder / "labels.csv").write_text(text)
        with TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1") as client:
            labels = settle(client)
        assert state_of(labels)[A] == "given" and frames_of(labels, A) == {"lift": 14}
        assert state_of(labels)[B] == "suggested"


def test_suggestions_are_those_of_the_library(client: TestClient) -> None:
    mark(client, A)
    span = {"id": "one", "name": "hold", "start": 10, "end": 30}
    act(client, "set_segment", video=A, segment=span)
    labels = settle(client)
    expected = transfer_labels(embed_takes(), {"a": true_events("a")}, segments={"a": [("hold", 10, 30)]})
    shown = {video["id"]: video for video in labels["videos"]}
    for name in expected.label_next:
        video, annotation = shown[video_id(name)], expected.videos[name]
        assert video["state"] == "suggested" and video["frames"] == PACES[name][0]
        assert video["certainty"] == expected.confidence(name)
        assert video["events"] == [
            {
                "name": each.name,
                "frame": each.at.frame,
                "certainty": each.confidence,
                "is_by_hand": False,
            }
            for each in sorted(annotation.events, key=lambda each: each.at.frame or 0)
        ]
        (found,), (segment,) = annotation.segments, video["segments"]
        assert (segment["start"], segment["end"]) == (found.start.frame, found.end.frame)
    assert labels["queue"] == [video_id(name) for name in expected.label_next]
    assert labels["queue"][0] == D  # the noisiest take is the least certain
    assert [each["name"] for each in labels["names"]] == ["lift", "drop", "hold"]


def test_an_accepted_video_votes_and_a_skipped_one_comes_last(client: TestClient) -> None:
    mark(client, A)
    first = settle(client)
    assert state_of(first) == {A: "labelled"} | dict.fromkeys([B, C, D, E], "suggested")
    for name in "bce":
        assert all(abs(frames_of(first, video_id(name))[e] - f) <= 1 for e, f in true_events(name).items())
    skipped = act(client, "skip", video=D)
    assert skipped["queue"][-1] == D and not skipped["is_updating"]  # skipping changes no vote
    act(client, "accept", video=B, events=true_events("b"))
    second = settle(client)
    voters = {name: true_events(name) for name in "ab"}
    expected = transfer_labels(embed_takes(), voters)
    assert B not in second["queue"] and second["queue"][-1] == D
    assert [id for id in second["queue"] if id != D] == [
        video_id(name) for name in expected.label_next if name != "d"
    ]
    events = {each.name: each.at.frame for each in expected.videos["d"].events}
    assert frames_of(second, D) == events
    act(client, "undo")
    act(client, "undo")
    assert settle(client) == first | {"revision": 6, "redo": {"type": "skip", "video": D}}


def test_a_nudged_suggestion_keeps_the_others_and_the_order(client: TestClient) -> None:
    mark(client, A)
    before = settle(client)
    after = act(client, "set_event", video=D, name="lift", frame=3, is_draft=True)
    assert not after["is_updating"] and after["queue"] == before["queue"]
    assert state_of(after)[D] == "suggested"
    assert frames_of(after, D) == frames_of(before, D) | {"lift": 3}
    refused = act(client, "delete_event", video=D, name="drop", is_draft=True)
    assert frames_of(refused, D) == {"lift": 3}


def test_a_late_event_is_suggested_in_accepted_videos(client: TestClient) -> None:
    act(client, "set_event", video=A, name="lift", frame=true_events("a")["lift"])
    act(client, "accept", video=B, events={"lift": true_events("b")["lift"]})
    act(client, "accept", video=C, events={})  # it has no lift
    assert B not in settle(client)["queue"]
    act(client, "set_event", video=A, name="drop", frame=true_events("a")["drop"])
    labels = settle(client)
    assert B in labels["queue"] and C in labels["queue"] and A not in labels["queue"]
    assert frames_of(labels, B)["lift"] == true_events("b")["lift"]  # by hand: it stays
    assert abs(frames_of(labels, B)["drop"] - true_events("b")["drop"]) <= 1
    exported = client.get("/api/labels/export?which=labelled").text
    assert "b,lift" in exported and "b,drop" not in exported
    assert act(client, "delete_event", video=B, name="drop", is_draft=True)["queue"].count(B) == 0
    assert B not in settle(client)["queue"]


def test_old_revisions_are_refused_and_repeated_actions_are_done_once(client: TestClient) -> None:
    act(client, "set_event", video=A, name="lift", frame=3)
    answer = act(client, "set_event", status=409, revision=0, video=A, name="lift", frame=9)
    assert answer["revision"] == 1
    step = {"revision": 1, "key": "once-and-only", "action": event(A, "drop", 20)}
    answers = [client.post("/api/labels", json=step).json() for _ in range(2)]
    assert [each["revision"] for each in answers] == [2, 2]
    assert frames_of(answers[1], A) == {"lift": 3, "drop": 20}


def test_labels_that_cannot_be_are_refused(client: TestClient) -> None:
    late = act(client, "set_event", status=422, video=A, name="lift", frame=48)
    assert late["error"] == "a: 'lift' is at frame 48, but the last frame is 47"
    empty = {"id": "s", "name": "hold", "start": 9, "end": 9}
    assert "from frame 9 to 9" in act(client, "set_segment", status=422, video=A, segment=empty)["error"]
    assert "nobody" in act(client, "skip", status=404, video="nobody")["error"]
    act(client, "set_event", status=422, video=A, name=" ", frame=1)
    assert client.get("/api/labels").json()["revision"] == 0


def test_without_embeddings_labels_are_kept_and_the_reason_is_told(folder: Path) -> None:
    shutil.rmtree(folder / ".cycleback")
    with TestClient(build_app(Studio(Project.open(folder))), base_url="http://127.0.0.1") as client:
        mark(client, A)
        labels = settle(client)
    assert "not embedded yet" in labels["problem"]
    assert frames_of(labels, A) == true_events("a") and state_of(labels)[B] == "none"


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_every_format_exports_and_imports(format: str, client: TestClient, folder: Path) -> None:
    for id, start in ((A, 5), (C, 8)):
        act(client, "set_segment", video=id, segment={"id": "x", "name": "hold", "start": start, "end": 30})
        if format != "frames":  # which has no key events beside segments
            mark(client, id)
    exported = client.get(f"/api/labels/export?format={format}&which=labelled")
    assert exported.status_code == 200, exported.text
    (name,) = re.findall('filename="(.+)"', exported.headers["content-disposition"])
    before = settle(client)
    act(client, "clear", video=A)
    act(client, "clear", video=C)
    file = {"name": name, "key": "import-1", "content": base64.b64encode(exported.content).decode()}
    revision = client.get("/api/labels").json()["revision"]
    answer = client.post("/api/labels/import", json={**file, "revision": revision})
    assert answer.status_code == 200, answer.text
    after = settle(client)
    for id in (A, C):
        old, new = (next(v for v in labels["videos"] if v["id"] == id) for labels in (before, after))
        assert new["events"] == old["events"] and new["state"] == "labelled"
        spans = [[(s["name"], s["start"], s["end"]) for s in video["segments"]] for video in (old, new)]
        assert spans[0] == spans[1]


def test_an_export_of_all_carries_the_certainty(client: TestClient) -> None:
    assert "no labels to export" in client.get("/api/labels/export").json()["error"]
    mark(client, A)
    table = client.get("/api/labels/export?format=csv&which=all").text  # waits for the suggestions
    labels = settle(client)
    rows = [line.split(",") for line in table.strip().splitlines()]
    assert rows[0] == ["video", "event", "frame", "seconds", "confidence"]
    found = {(row[0], row[1]): (int(row[2]), row[4]) for row in rows[1:]}
    for name, video in zip(PACES, labels["videos"], strict=True):
        for each in video["events"]:
            sure = "" if name == "a" else str(each["certainty"])
            assert found[name, each["name"]] == (each["frame"], sure)


def test_labels_found_by_a_program_are_not_imported_as_labels_by_hand(folder: Path) -> None:
    labels = Studio(Project.open(folder)).labels
    text = b"video,event,frame,confidence\na,lift,14,0.8\nb,lift,20,\n"
    imported = labels.read_import("labels.csv", text)
    assert [(each.video, each.events) for each in imported.videos] == [(B, {"lift": 20})]
    with pytest.raises(DataError, match=r"only\.csv: no labels by hand"):
        labels.read_import("only.csv", text.rsplit(b"\n", 2)[0])
    with pytest.raises(DataError, match="is not text"):
        labels.read_import("clip.csv", b"\xff\xfe\x00\x01")


def test_two_servers_share_one_journal(folder: Path) -> None:
    apps = [build_app(Studio(Project.open(folder))) for _ in range(2)]
    with (
        TestClient(apps[0], base_url="http://127.0.0.1") as one,
        TestClient(apps[1], base_url="http://127.0.0.1") as two,
    ):
        act(one, "set_event", video=A, name="lift", frame=3)
        act(two, "set_event", status=409, revision=0, video=A, name="lift", frame=5)
        act(two, "set_event", revision=1, video=A, name="drop", frame=9)
        assert frames_of(one.get("/api/labels").json(), A) == {"lift": 3, "drop": 9}


SERVE = """
import sys
from cycleback.web.app import Studio
from cycleback.web.project import Project
from cycleback.web.server import StudioServer
StudioServer(Studio(Project.open(sys.argv[1])), port=int(sys.argv[2])).run(lambda: print("ready", flush=True))
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def serve(folder: Path, port: int) -> subprocess.Popen[str]:
    """Start a studio in a process of its own."""
    command = [sys.executable, "-c", SERVE, str(folder), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


def test_a_killed_server_loses_nothing_it_answered(folder: Path) -> None:
    port = free_port()
    process = serve(folder, port)
    answered: list[int] = []

    def label() -> None:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
            for revision in itertools.count():
                step = {
                    "revision": revision,
                    "key": f"action-{revision}",
                    "action": event(A, "lift", revision % 48),
                }
                try:
                    answered.append(client.post("/api/labels", json=step).json()["revision"])
                except httpx.HTTPError:
                    return

    thread = threading.Thread(target=label)
    thread.start()
    while len(answered) < 20:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    thread.join()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    entries = Journal(folder / ".cycleback").entries("labels")
    assert [entry.revision for entry in entries] == list(range(1, len(entries) + 1))
    assert answered == list(range(1, len(answered) + 1))
    assert len(answered) <= len(entries) <= len(answered) + 1  # one may be written and not answered
