"""What a server answers, and what it refuses."""

import json
import math
from pathlib import Path

import pytest

from bakeoff.scoring.texts import TextScore
from tests.web.fakes import FakeModel


def test_each_verb(server):
    asked = server({"one": FakeModel()})
    assert asked.get("/health") == (200, {"status": "ok"})
    (about,) = asked.get("/models")[1]["models"]
    assert about == {
        "name": "one",
        "recipe": "fake-tiny",
        "verbs": ["fill", "generate", "predict", "embed", "score"],
        "token_weights": True,
    }
    status, answer = asked.post("fill", texts=["a [MASK] b [MASK]", "[MASK]"], k=2)
    assert (status, [len(each) for each in answer["answers"]]) == (200, [2, 1])
    assert answer["answers"][0][1][0] == {"token": "t0", "id": 0, "probability": 0.5}
    assert asked.post("embed", texts=["abc"], pooling="cls")[1]["answers"] == [[3.0, 1.0]]
    assert asked.post("score", texts=["a b"])[1]["answers"] == [{"log_probability": -3.0, "tokens": 2, "unknown": 0}]
    status, answer = asked.post("predict", texts=["a longer text", "no"], weights=True)
    assert [each["label"] for each in answer["answers"]] == ["long", "short"]
    assert [each["token"] for each in answer["answers"][0]["token_weights"]["weights"]] == ["a", "longer", "text"]
    assert all("probabilities" not in each for each in answer["answers"])
    status, answer = asked.post("predict", texts=["a longer text"], probabilities=True)
    assert answer["answers"][0]["probabilities"] == {"long": 0.75, "short": 0.25}
    assert asked.post("generate", texts=["x", "y"], tokens=3, seed=1)[1]["answers"] == [" 1 2 3", " 1 2 3"]


@pytest.fixture(scope="module")
def refusing(lasting_server):
    """One server for all that is refused, which no refusal changes."""
    return lasting_server({"one": FakeModel("fill", "predict", "generate", weights=False)})


@pytest.mark.parametrize(
    ("verb", "body", "status", "says"),
    [
        ("fill", {"texts": []}, 422, "texts: nothing given; give at least 1"),
        ("fill", {"texts": "a"}, 422, "texts: "),
        ("fill", {"texts": [3]}, 422, "texts.0: "),
        ("fill", {}, 422, "texts: this key is required"),
        ("fill", {"text": ["a"]}, 422, "did you mean 'texts'?"),
        ("fill", {"texts": ["a"] * 65}, 422, "65 given; a request may hold 64"),
        ("fill", {"texts": ["a" * 20_001]}, 422, "20,001 characters"),
        ("fill", {"texts": ["\ud800"]}, 400, "surrogate"),
        ("fill", {"texts": ["[MASK]"], "k": 0}, 422, "k: "),
        ("fill", {"texts": ["[MASK]"], "k": True}, 422, "k: "),
        ("fill", {"texts": ["bad"]}, 422, "one: text 1 ('bad')"),
        ("embed", {"texts": ["a"], "pooling": "sum"}, 422, "pooling: "),
        ("fill", {"texts": ["broken"]}, 500, "ValueError"),
        ("fill", {"texts": ["a"], "model": "onee"}, 404, "did you mean 'one'?"),
        ("fill", {"texts": ["a"], "model": "../one"}, 404, "there is no"),
        ("embed", {"texts": ["a"]}, 422, "model: none that is served here can embed; GET /models says"),
        ("embed", {"texts": ["a"], "model": "one"}, 422, "cannot embed"),
        ("predict", {"texts": ["a"], "pairs": []}, 422, "0 second texts for 1 text"),
        ("predict", {"texts": ["a"], "weights": True}, 422, "no classifier"),
        ("generate", {"texts": ["a"], "tokens": 513}, 422, "tokens: 513"),
        ("generate", {"texts": ["a"], "beams": 9}, 422, "beams: 9"),
        ("generate", {"texts": ["a"], "beams": 2, "top_k": 3}, 422, "does not sample"),
        ("generate", {"texts": ["a"], "length_penalty": 1}, 422, "give beams, too"),
        ("generate", {"texts": ["a", "b"], "stream": True}, 422, "one text is written at a time"),
        ("generate", {"texts": ["bad"], "stream": True}, 422, "too long"),
        ("nothing", {"texts": ["a"]}, 404, "nothing here"),
        ("health", {"texts": ["a"]}, 405, "wrong method"),
    ],
)
def test_what_is_refused(refusing, verb, body, status, says, capfd):
    got, answer = refusing.post(verb, **body)
    assert (got, list(answer)) == (status, ["error"])
    assert says in answer["error"]
    assert "\n" not in answer["error"]
    assert "secret" not in answer["error"]  # where the run lies
    assert refusing.post("fill", texts=["[MASK]"])[0] == 200
    assert ("a mistake of ours" in capfd.readouterr().err) == (status == 500)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b" ", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[1]", "application/json", 400),
        (b'{"texts": ["a"], "texts": []}', "application/json", 400),
        (b'{"texts": ["\xff"]}', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"k": 1' + b"0" * 5000 + b"}", "application/json", 400),
        (b"{}", "text/plain", 415),
        (b" " * 2_000_000, "application/json", 413),
    ],
)
def test_bodies_that_are_none(refusing, body, kind, status):
    got, headers, answer = refusing.raw("POST", "/fill", body, {"Content-Type": kind})
    assert got == status
    assert json.loads(answer)["error"]
    assert "file" not in json.loads(answer)["error"]
    assert headers["content-type"] == "application/json"


def test_several_models_have_to_be_named(server):
    asked = server({"one": FakeModel("fill"), "two": FakeModel("fill"), "three": FakeModel("score")})
    assert asked.post("fill", texts=["[MASK]"]) == (
        422,
        {"error": "model: say which one; those that can fill: one, two"},
    )
    assert asked.post("fill", texts=["[MASK]"], model="two")[1]["model"] == "two"
    assert asked.post("score", texts=["a"])[1]["model"] == "three"


def test_a_token(server):
    asked = server({"one": FakeModel()}, token="s" * 16)
    status, headers, _ = asked.raw("GET", "/models")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    for wrong in ("Bearer wrong", "Bearer", "Basic " + "s" * 16, "Bearer \xe4"):
        assert asked.post("score", {"Authorization": wrong}, texts=["a"])[0] == 401
    assert asked.post("score", {"Authorization": "bearer " + "s" * 16}, texts=["a"])[0] == 200
    assert [asked.raw("GET", path)[0] for path in ("/", "/page.js", "/page.css", "/health", "/docs")] == [200] * 5


def test_a_token_is_described(server):
    described = server({"one": FakeModel()}, token="s" * 16).get("/openapi.json")[1]
    assert described["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    asks = {path for path, methods in described["paths"].items() for each in methods.values() if "security" in each}
    assert asks == set(described["paths"]) - {"/health"}
    assert "401" in described["paths"]["/fill"]["post"]["responses"]


def test_a_head_is_the_answer_without_its_body(server):
    asked = server({"one": FakeModel()})
    for path in ("/health", "/models", "/", "/docs", "/openapi.json"):
        _, whole, _ = asked.raw("GET", path)
        status, headers, body = asked.raw("HEAD", path)
        assert (status, headers["content-length"], body) == (200, whole["content-length"], b"")
    assert asked.raw("HEAD", "/fill")[0] == 405


def test_other_hosts_and_origins(server):
    """A page elsewhere whose name points to 127.0.0.1 is refused, and so is one that posts from elsewhere."""
    asked = server({"one": FakeModel()})
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", ""):
        assert asked.raw("GET", "/models", headers={"Host": host})[0] == 421
    for host in ("localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000"):
        assert asked.raw("GET", "/models", headers={"Host": host})[0] == 200
    own = {"Origin": f"http://127.0.0.1:{asked.port}"}
    assert asked.post("score", own, texts=["a"])[0] == 200
    for origin in ("http://evil.example", "null", f"http://127.0.0.1:{asked.port + 1}"):
        assert asked.post("score", {"Origin": origin}, texts=["a"])[0] == 403


def test_headers_of_security(server):
    asked = server({"one": FakeModel()})
    for path in ("/", "/models", "/docs", "/nothing", "/page.js", "/openapi.json"):
        _, headers, body = asked.raw("GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert b"http://" not in body
        assert b"https://" not in body


def test_the_description_is_that_of_what_is_read(server):
    asked = server({"one": FakeModel()})
    described = asked.get("/openapi.json")[1]
    assert set(described["paths"]) == {
        *("/health", "/models", "/metrics", "/fill", "/generate", "/predict", "/embed", "/score")
    }
    schemas = described["components"]["schemas"]
    assert set(schemas["Generate"]["properties"]) >= {"texts", "tokens", "seed", "stream", "beams"}
    assert all("description" in field for field in schemas["Generate"]["properties"].values())
    answers = described["paths"]["/generate"]["post"]["responses"]
    assert set(answers) == {"200", *["400", "403", "404", "408", "413", "415", "421", "422", "500", "503", "504"]}
    assert set(answers["200"]["content"]) == {"application/json", "text/event-stream"}
    failed = [each["content"]["application/json"]["schema"] for code, each in answers.items() if code != "200"]
    assert all(schema == {"$ref": "#/components/schemas/Error"} for schema in failed)
    assert "securitySchemes" not in described["components"]
    assert "top_p" in asked.raw("GET", "/docs")[2].decode()

    def references(node):
        if isinstance(node, dict):
            yield from [node["$ref"]] if "$ref" in node else []
            node = list(node.values())
        if isinstance(node, list):
            for each in node:
                yield from references(each)

    assert {name.rpartition("/")[2] for name in references(described)} <= set(schemas)


def test_numbers_that_json_has_not(server):
    model = FakeModel()
    model.score = lambda texts: [{"log_probability": -math.inf} for _ in texts]
    assert server({"one": model}).post("score", texts=["a"])[1]["answers"] == [{"log_probability": None}]


def test_the_page_names_all_that_a_score_has():
    page = Path(__file__).parents[2] / "docs" / "serve.md"
    row = next(line for line in page.read_text().splitlines() if line.startswith("| `POST /score`"))
    assert [name for name in TextScore._fields if f"`{name}`" not in row] == []
