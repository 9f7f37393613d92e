"""Every answer is one that the page understands: never a 500, one line of JSON for every error."""

from pathlib import Path
from urllib.parse import quote

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from starlette.testclient import TestClient

from cycleback.errors import UserError
from cycleback.web.app import Studio, build_app
from cycleback.web.journal import StaleRevision
from cycleback.web.project import video_id

FUZZ = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
IDS = some.sampled_from([video_id(name) for name in ("bframes", "uneven", "intra", "sound")]) | some.text(
    max_size=14
)
NUMBERS = (
    some.integers(-3, 80).map(str)
    | some.integers().map(str)
    | some.text(max_size=6)
    | some.sampled_from(["1e9", "0x1", "-0", "nan", "٣", " 1", "9" * 5000])
)
RANGES = some.tuples(NUMBERS, NUMBERS).map(lambda pair: f"bytes={pair[0]}-{pair[1]}") | some.text(max_size=20)


def test_errors_are_one_line_of_json(studio: Studio) -> None:
    app = build_app(studio)

    def fail() -> None:
        raise RuntimeError("a fault")

    def stale() -> None:
        raise StaleRevision("pins", given=1, revision=4)

    def wrong() -> None:
        raise UserError("what is wrong")

    page = app.router.routes.pop()  # it answers everything that no route before it does
    for name, action in {"fail": fail, "stale": stale, "wrong": wrong}.items():
        app.add_api_route(f"/api/{name}", action)
    app.router.routes.append(page)
    client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    assert client.get("/api/wrong").json() == {"error": "what is wrong"}
    answer = client.get("/api/stale")
    assert answer.status_code == 409 and answer.json()["revision"] == 4
    answer = client.get("/api/fail")
    assert answer.status_code == 500 and "RuntimeError: a fault" in answer.json()["error"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("/api/nothing").json()["error"] == "GET /api/nothing: Not Found"
    assert (
        client.get(f"/api/videos/{video_id('intra')}/strip.jpg?count=x").json()["error"].startswith("count: ")
    )


def test_the_page_and_its_description_are_served(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html") and "main.js" in page.text
    assert client.get("/main.js").headers["content-type"].startswith("text/javascript")
    assert "/api/videos/{id}/times" in client.get("/api/openapi.json").json()["paths"]


@FUZZ
@given(id=IDS, number=NUMBERS, height=NUMBERS)
def test_no_frame_that_is_asked_for_breaks_the_studio(
    client: TestClient, id: str, number: str, height: str
) -> None:
    for route in (f"frames/{number}.jpg", "strip.jpg"):
        answer = client.get(
            f"/api/videos/{_part(id)}/{_part(route)}", params={"height": height, "count": number}
        )
        assert answer.status_code in (200, 404, 422), answer.text
        assert answer.status_code == 200 or answer.json()["error"]


@FUZZ
@given(id=IDS, route=some.sampled_from(["", "/times", "/media", "/peaks?count=7"]), range=RANGES)
def test_no_range_that_is_asked_for_breaks_the_studio(
    client: TestClient, id: str, route: str, range: str
) -> None:
    answer = client.get(f"/api/videos/{_part(id)}{route}", headers={"Range": range.encode()})
    assert answer.status_code in (200, 206, 400, 404, 416), answer.text


@FUZZ
@given(some.data())
def test_no_odd_question_to_any_part_breaks_the_studio(client: TestClient, data: some.DataObject) -> None:
    paths = client.get("/api/openapi.json").json()["paths"]
    path = data.draw(some.sampled_from(sorted(path for path in paths if "get" in paths[path])))
    query = {}
    for parameter in paths[path]["get"].get("parameters", []):
        value = data.draw(IDS | NUMBERS | some.sampled_from(["auto", "frame", ",", "..", "\x00"]))
        if parameter["in"] == "path":
            path = path.replace(f"{{{parameter['name']}}}", _part(value) or "x")
        elif parameter["in"] == "query":
            query[parameter["name"]] = value
    answer = client.get(path, params=query)
    assert answer.status_code < 500, answer.text
    assert answer.status_code < 400 or "\n" not in answer.json()["error"]


def test_a_video_deleted_meanwhile_gives_one_line(client: TestClient, project_folder: Path) -> None:
    route = f"/api/videos/{video_id('intra')}"
    assert client.get(route).status_code == 200
    (project_folder / "intra.mp4").unlink()
    for part in ("/media", "/media?proxy=1", "/frames/1.jpg", "/strip.jpg"):
        answer = client.get(route + part)
        assert answer.status_code in (404, 422), part
        assert answer.json()["error"]


def _part(text: str) -> str:
    return quote(text, safe="")
