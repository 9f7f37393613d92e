"""Strangers are refused: foreign hosts, foreign pages, missing tokens, paths outside the project."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from cycleback.errors import DataError, UserError
from cycleback.web.app import Studio, build_app
from cycleback.web.project import Project, video_id
from cycleback.web.security import MAX_BODY_BYTES, Access
from cycleback.web.uploads import clean_name

JSON = {"Content-Type": "application/json"}


def ask(studio: Studio, access: Access, host: str) -> TestClient:
    return TestClient(build_app(studio, access), base_url=f"http://{host}", raise_server_exceptions=False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8765", "[::1]:8765", "LOCALHOST:1", "127.8.8.8"])
def test_names_of_this_machine_are_known(client: TestClient, host: str) -> None:
    assert client.get("/api/project", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8765",
            "localhost@evil.example",
        ),
        *("10.0.0.5", "evil.example#localhost", "localhost:x", "localhost/", "localhost.", "[::1", "0x7f.1"),
    ],
)
def test_other_names_that_point_here_are_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/project"):
        assert client.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
def test_other_pages_cannot_read_the_api(client: TestClient, site: str) -> None:
    route = f"/api/videos/{video_id('intra')}/frames/0.jpg"
    assert client.get(route, headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get(route, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200
    assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200  # a link to the page is fine


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:9999", "https://evil@127.0.0.1", "", "//[", "x"],
)
def test_other_pages_cannot_change_anything(client: TestClient, project_folder: Path, origin: str) -> None:
    clip = (project_folder / "intra.mp4").read_bytes()
    headers = {"Origin": origin, "Content-Type": "video/mp4"}
    assert client.post("/api/videos?name=new.mp4", content=clip, headers=headers).status_code == 403
    assert client.put("/api/pins", content=b"{}", headers={**JSON, "Origin": origin}).status_code == 403
    assert not (project_folder / "new.mp4").exists()


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", ""]
)
def test_types_that_a_foreign_form_can_send_are_refused(client: TestClient, kind: str) -> None:
    for method, path in (("PUT", "/api/pins"), ("POST", "/api/videos?name=a.mp4"), ("DELETE", "/api/x")):
        assert client.request(method, path, content=b"{}", headers={"Content-Type": kind}).status_code == 415


def test_large_bodies_and_bodies_of_unknown_length_are_refused(client: TestClient) -> None:
    large = {**JSON, "Content-Length": str(MAX_BODY_BYTES + 1)}
    assert client.put("/api/pins", content=b"{}", headers=large).status_code == 413
    assert client.put("/api/pins", content=iter([b"{}"]), headers=JSON).status_code == 411


def test_another_address_needs_a_token(studio: Studio) -> None:
    access = Access.for_host("0.0.0.0")
    client = ask(studio, access, "192.168.1.7:8765")
    assert len(access.token) >= 32 and Access.for_host("0.0.0.0") != access
    assert client.get("/").status_code == 200  # the page itself holds nothing secret
    for wrong in (
        {},
        {"Authorization": "Bearer x"},
        {"Authorization": access.token},
        {"Authorization": "Bearer é".encode()},
    ):
        assert client.get("/api/project", headers=wrong).status_code == 401
    assert client.get(f"/api/project?token={access.token}x").status_code == 401
    assert client.get("/api/project", headers={"Authorization": f"Bearer {access.token}"}).status_code == 200
    assert client.get(f"/api/videos/{video_id('intra')}/media?token={access.token}").status_code == 200
    put = client.put(f"/api/pins?token={access.token}", content=b"{}", headers=JSON)
    assert put.status_code == 401  # an address with a token may be shared by mistake: it can only read
    for host, status in (("evil.example", 403), ("127.0.0.1", 401)):
        assert client.get("/api/project", headers={"Host": host}).status_code == status


def test_loopback_needs_no_token() -> None:
    assert [Access.for_host(host).token for host in ("127.0.0.1", "::1", "localhost")] == ["", "", ""]


def test_every_answer_has_strict_headers(client: TestClient) -> None:
    for path in ("/", "/main.js", "/api/project", "/api/nothing", f"/api/videos/{video_id('intra')}/media"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-embedder-policy"] == "require-corp"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert "default-src 'self'" in policy and "unsafe" not in policy and "object-src 'none'" in policy


def test_only_pages_of_this_machine_may_show_the_studio_in_a_frame() -> None:
    ancestors = Access().content_policy.split("frame-ancestors ")[1].split()
    hosts = {source.split("//")[-1] for source in ancestors} - {"'self'"}
    assert hosts == {"localhost:*", "127.0.0.1:*"}
    assert Access("0.0.0.0", "token").content_policy.endswith("frame-ancestors 'self'")


def test_a_websocket_is_refused(client: TestClient) -> None:
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/project"):
        pass


@pytest.mark.parametrize(
    "path",
    [
        *("/../project.py", "/%2e%2e/project.py", "/..%2fproject.py", "/%2e%2e%2fapp.py", "//etc/passwd"),
        *("/vendor/..%5c..%5capp.py", "/%00", "/.%00/", "/....//app.py"),
    ],
)
def test_the_page_folder_cannot_be_left(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (400, 404)


@pytest.mark.parametrize(
    "id", ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "intra", "intra.mp4"]
)
def test_videos_are_found_by_id_only(client: TestClient, id: str) -> None:
    for route in ("", "/media", "/times", "/frames/0.jpg", "/strip.jpg", "/peaks"):
        assert client.get(f"/api/videos/{id}{route}").status_code == 404


def test_a_link_out_of_the_folder_is_listed_but_not_read(project_folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "secret.mp4"
    (project_folder / "intra.mp4").rename(outside)
    (project_folder / "link.mp4").symlink_to(outside)
    (project_folder / "inside.mp4").symlink_to(project_folder / "bframes.mp4")
    client = TestClient(build_app(Studio(Project.open(project_folder))), base_url="http://127.0.0.1")
    listed = {video["name"]: video["error"] for video in client.get("/api/project").json()["videos"]}
    assert "outside" in listed["link"] and not listed["inside"]
    for route in ("", "/media", "/media?proxy=1", "/times", "/frames/0.jpg", "/strip.jpg", "/peaks"):
        assert client.get(f"/api/videos/{video_id('link')}{route}").status_code == 422
    assert client.get(f"/api/videos/{video_id('inside')}/media").status_code == 200
    followed = Project.open(project_folder, follow_links=True)
    assert followed.find("link").info.num_frames == 50


@pytest.mark.parametrize("name", [".cycleback", ".cycleback/journal.jsonl", ".cycleback/proxies"])
def test_nothing_is_written_through_a_link_out_of_the_folder(
    project_folder: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project_folder / name).parent.mkdir(exist_ok=True)
    (project_folder / name).symlink_to(outside)
    with pytest.raises(DataError, match="is a link out of"):
        Studio(Project.open(project_folder))


@pytest.mark.parametrize(
    "name, safe",
    [
        ("../../etc/a.mp4", "a.mp4"),
        ("C:\\Users\\me\\swing.MOV", "swing.mov"),
        ("/abs/x.webm", "x.webm"),
        (".hidden.mp4", "hidden.mp4"),
        ("a\x00b\n<c>.mp4", "a_b__c.mp4"),
        ("…/日本 語.mp4", "日本 語.mp4"),
        ("con.mp4", "_con.mp4"),
        ("....mp4", "video.mp4"),
        ("x" * 500 + ".mp4", "x" * 100 + ".mp4"),
        ("a..mp4", "a.mp4"),
    ],
)
def test_names_of_uploads_become_safe(name: str, safe: str) -> None:
    assert "".join(clean_name(name)) == safe


@pytest.mark.parametrize("name", ["a.py", "a", "", ".mp4/", "a.mp4.exe", "labels.csv", "mp4", "a.npz"])
def test_only_video_files_can_be_added(name: str) -> None:
    with pytest.raises(UserError, match="expected a video file"):
        clean_name(name)
