from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest
from conftest import answer, feature

import weir

Handler = Callable[[httpx.Request], httpx.Response]
ADDRESS = "http://weir.test"
NO_WAIT = weir.Retries(first=0)


def ask(handler: Handler, asynchronous: bool = False, client: dict[str, Any] | None = None, **question: Any) -> weir.Answer:
    """Sends one question with either client to a server that answers with the handler."""
    arguments = {"transport": httpx.MockTransport(handler), "retries": NO_WAIT} | (client or {})
    question = {"features": ["f"], "entities": [{"user_id": "u1"}]} | question
    if not asynchronous:
        with weir.Client(ADDRESS, **arguments) as c:
            return c.query(**question)

    async def run() -> weir.Answer:
        async with weir.AsyncClient(ADDRESS, **arguments) as c:
            return await c.query(**question)

    return asyncio.run(run())


def sent(**question: Any) -> Any:
    """Returns the question as the server receives it."""
    bodies: list[bytes] = []

    def handler(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        return httpx.Response(200, content=answer({"f": feature()}))

    ask(handler, **question)
    return json.loads(bodies[0], parse_float=str)


def test_question() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, timezone.utc)
    assert sent(entities=[{"user_id": "u", "amount": Decimal("9007199254740993.10"), "at": at}], at=at) == {
        "features": ["f"],
        "entities": [{"user_id": "u", "amount": "9007199254740993.10", "at": 1767323045678}],
        "at": 1767323045678,
    }
    assert sent(
        features=None,
        service="s",
        members={"f": (1, 2)},
        pending=[weir.Event("transaction", {"id": 'a"\n'})],
        event=weir.Event("login", {"ok": True}),
        wait_for=weir.Record("t", 3, 9, timeout=0.25),
        at=5,
    ) == {
        "service": "s",
        "entities": [{"user_id": "u1"}],
        "members": {"f": [1, 2]},
        "pending": [{"stream": "transaction", "event": {"id": 'a"\n'}}],
        "event": {"stream": "login", "event": {"ok": True}},
        "wait_for": {"topic": "t", "partition": 3, "offset": 9, "timeout_ms": 250},
        "at": 5,
    }
    assert sent(members={"a"})["members"] == ["a"]
    born = datetime(1987, 5, 12, 23, 1, 11, 731000, timezone.utc)  # its seconds are no float that times 1000 is the milliseconds
    assert sent(entities=[{"born": born}])["entities"] == [{"born": 547858871731}]


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ({"features": "f"}, TypeError, "a list of names, not one name"),
        ({"members": "m1"}, TypeError, "a list of values, not one value"),
        ({"members": {"f": "m1"}}, TypeError, "a list of values, not one value"),
        ({"at": datetime(2026, 1, 1)}, ValueError, "has no time zone"),
        ({"entities": [{"x": float("nan")}]}, ValueError, "not a JSON number"),
        ({"entities": [{"x": Decimal("Infinity")}]}, ValueError, "not a JSON number"),
        ({"entities": [{"x": object()}]}, TypeError, "not JSON serializable"),
    ],
)
def test_questions_that_cannot_be_sent(question: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sent(**question)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_answer(asynchronous: bool) -> None:
    body = answer(
        {
            "f": feature(status="INCOMPLETE", complete_since=500, complete_at=9000, filled=0, relative_error=0, uncertain=2, capped=True, exact=False),
            "newer": feature(status="A_LATER_ONE"),
            "past": feature(status="LATER_EVENTS", later_events=True, exact=False),
            "lifetime": feature(**{"from": None, "value": {"a": [1, None, 0.5]}}),
            "seen": {"members": [{"member": "m", "value": True, "status": "PRESENT"}, {"member": "n", "value": None, "status": "PRESENT"}], "capped": True, "from": 0, "to": 1, "exact": True},
        },
        waited={"applied": True},
        read_from="replica",
        staleness_ms=1500,
        table_lag_ms=200,
        pending=[{"stream": "t", "time": 7, "deduplicated": True, "uncounted": True}, {"stream": "t", "time": 7, "deduplicated": True, "met": 2000}],
        a_later_field=1,
    )
    got = ask(lambda _: httpx.Response(200, content=body), asynchronous)
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    f = got.results[0]["f"]
    assert (f.value, f.status, f.start, f.end, f.exact) == (3, weir.Status.INCOMPLETE, epoch, epoch + timedelta(seconds=1), False)
    assert (f.complete_since, f.relative_error, f.uncertain, f.capped) == (epoch + timedelta(seconds=0.5), 0.0, 2, True)
    assert (f.filled, got.results[0]["newer"].filled) == (0.0, None)
    assert (f.complete_at, got.results[0]["newer"].complete_at) == (epoch + timedelta(seconds=9), None)
    assert got.results[0]["newer"].status == "A_LATER_ONE"
    past = got.results[0]["past"]
    assert (past.status, past.later_events, f.later_events) == (weir.Status.LATER_EVENTS, True, False)
    assert (got.results[0]["lifetime"].value, got.results[0]["lifetime"].start) == ({"a": [1, None, 0.5]}, None)
    assert got.results[0]["seen"].members == (weir.Member("m", True, weir.Status.PRESENT), weir.Member("n", None, weir.Status.PRESENT))
    assert got.results[0]["seen"].status is None
    assert sorted(got.results[0]) == ["f", "lifetime", "newer", "past", "seen"]
    assert (got.applied, got.nothing_applied, got.read_from, got.staleness) == (True, False, "replica", timedelta(seconds=1.5))
    assert got.table_lag == timedelta(milliseconds=200)
    assert got.pending == (
        weir.PendingOutcome("t", epoch + timedelta(milliseconds=7), True, False, True),
        weir.PendingOutcome("t", epoch + timedelta(milliseconds=7), True, False, met=epoch + timedelta(seconds=2)),
    )


def test_rules_use_only_what_is_known() -> None:
    known = ["PRESENT", "NULL_VALUE", "NOT_FOUND"]
    statuses = [*(s.value for s in weir.Status), "A_LATER_ONE"]
    body = answer(
        {s: feature(status=s, value=None) for s in statuses},
        {s: {"members": [{"member": "m", "value": False, "status": s}], "from": 0, "to": 1, "exact": True} for s in statuses},
        {"f": {"members": [{"member": m, "value": v, "status": "PRESENT"} for m, v in [("m", True), ("n", None)]], "from": 0, "to": 1, "exact": True}},
    )
    values, members, partly = ask(lambda _: httpx.Response(200, content=body)).results
    assert [name for name, f in values.items() if f.known] == known
    assert [name for name, f in members.items() if f.known and f.members[0].known] == known
    assert ([m.known for m in partly["f"].members], partly["f"].known) == ([True, False], False)


def test_what_answers_lack() -> None:
    body = answer({"f": feature()}, waited={"applied": False, "nothing_applied": True}, table_lag_ms=0)
    got = ask(lambda _: httpx.Response(200, content=body))
    assert (got.applied, got.nothing_applied, got.table_lag) == (False, True, timedelta(0))
    got = ask(lambda _: httpx.Response(200, content=answer({"f": feature()})))
    assert (got.applied, got.nothing_applied, got.table_lag) == (None, False, None)


def test_decimals_keep_their_digits() -> None:
    body = b'{"at":0,"results":[{"entity":{},"features":{"f":{"value":0.10000000000000000001,"status":"PRESENT","from":0,"to":1,"exact":true}}}]}'
    assert ask(lambda _: httpx.Response(200, content=body)).results[0]["f"].value == 0.1
    exact = ask(lambda _: httpx.Response(200, content=body), client={"decimals": True})
    assert exact.results[0]["f"].value == Decimal("0.10000000000000000001")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_refusal(asynchronous: bool) -> None:
    asked = 0

    def handler(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        error = {"code": "unknown_feature", "message": 'no feature "g"', "feature": "g", "nearest": "f"}
        return httpx.Response(404, json={"error": error})

    with pytest.raises(weir.Error, match=r'no feature "g" \(unknown_feature\)') as e:
        ask(handler, asynchronous)
    assert (e.value.status, e.value.code, e.value.feature, e.value.nearest, e.value.entity) == (404, "unknown_feature", "g", "f", None)
    assert asked == 1


def test_errors_of_another_process() -> None:
    """Pools of processes pickle an exception; one that cannot be unpickled ends the pool, or hangs it."""
    details = {"code": "missing_key", "message": "no key", "feature": "f", "key": "user_id", "entity": 0}
    e = weir.Error(400, "missing_key", "no key", details, 3.0)
    again = pickle.loads(pickle.dumps(e))
    assert (str(again), vars(again)) == ("no key (missing_key)", vars(e))


def test_answers_that_are_not_weirs() -> None:
    with pytest.raises(weir.Error, match="the server answered 502, but not as Weir does"):
        ask(lambda _: httpx.Response(502, text="<html>"))
    no_answers = [b"<html>", b"[]", b'{"at":0}', b'{"at":0,"results":[{"entity":{},"features":{"f":{}}}]}']
    for body in (*no_answers, b'{"at":1e300,"results":[]}', b"[" * 100_000):
        with pytest.raises(weir.WeirError, match="the answer cannot be read"):
            ask(lambda _, body=body: httpx.Response(200, content=body))  # type: ignore[misc]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("failures", "client", "asked", "error"),
    [
        ([httpx.ConnectError("refused"), 503], {}, 3, None),
        ([httpx.ConnectError("refused")] * 3, {}, 3, weir.Unreachable),
        ([503] * 3, {}, 3, weir.Error),
        ([503], {"retries": weir.Retries(attempts=1)}, 1, weir.Error),
        ([httpx.ReadTimeout("slow")], {}, 1, weir.Unreachable),  # a retry would take as long
        ([500], {}, 1, weir.Error),
        ([(503, "3")], {"timeout": 9}, 1, weir.Error),  # longer than the longest wait
        ([(503, "2")], {"timeout": 2}, 1, weir.Error),  # longer than the time left
        ([(503, "soon")], {}, 1, weir.Error),
    ],
)
def test_retries(asynchronous: bool, failures: list[Any], client: dict[str, Any], asked: int, error: type[Exception] | None) -> None:
    attempts = 0

    def handler(_: httpx.Request) -> httpx.Response:
        nonlocal attempts
        attempts += 1
        if attempts > len(failures):
            return httpx.Response(200, content=answer({"f": feature()}))
        failure = failures[attempts - 1]
        if isinstance(failure, Exception):
            raise failure
        status, after = failure if isinstance(failure, tuple) else (failure, "0")
        return httpx.Response(status, headers={"Retry-After": after}, json={"error": {"code": "overloaded", "message": "later"}})

    if error is None:
        ask(handler, asynchronous, client)
    else:
        with pytest.raises(error):
            ask(handler, asynchronous, client)
    assert attempts == asked


@pytest.mark.parametrize(
    ("chance", "failure", "longest"),
    [(0.0, "1", 1.0), (1.0, "1", 1.5), (1.0, "0", 0.01), (1.0, None, 0.01)],
)
def test_waits_are_spread(monkeypatch: pytest.MonkeyPatch, chance: float, failure: str | None, longest: float) -> None:
    """Else all clients that a server refuses would ask again at once."""
    waits: list[float] = []

    def handler(_: httpx.Request) -> httpx.Response:
        if waits:
            return httpx.Response(200, content=answer({"f": feature()}))
        if failure is None:
            raise httpx.ConnectError("refused")
        return httpx.Response(503, headers={"Retry-After": failure}, json={"error": {"code": "overloaded", "message": "later"}})

    monkeypatch.setattr("random.random", lambda: chance)
    monkeypatch.setattr("time.sleep", waits.append)
    ask(handler, client={"retries": weir.Retries()})
    assert waits == [longest]


class Trickle(httpx.AsyncByteStream):
    """An answer that never ends, although its bytes never stop."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            await anyio.lowlevel.checkpoint()
            yield b" "


def test_an_answer_that_comes_slowly() -> None:
    async def run() -> None:
        with anyio.fail_after(20):
            async with weir.AsyncClient(ADDRESS, timeout=0.05, transport=httpx.MockTransport(lambda _: httpx.Response(200, stream=Trickle()))) as c:
                with pytest.raises(weir.Unreachable, match="no answer in time"):
                    await c.feature("f", user_id="u1")

    asyncio.run(run())


def test_a_wait_that_ends_after_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last attempt then has hardly any time, but the failure is that of the connection."""
    now, timeouts = 100.0, []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds + 2

    def handler(request: httpx.Request) -> httpx.Response:
        timeouts.append(request.extensions["timeout"]["connect"])
        raise httpx.ConnectError("refused")

    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("time.sleep", sleep)
    with pytest.raises(weir.Unreachable, match="refused"):
        ask(handler, client={"timeout": 1})
    assert timeouts == [1, 0.001]


def test_retry_after() -> None:
    """An error has the seconds until a retry only if the server sends them as a number."""
    for status, header, want in [(503, "3", 3.0), (503, "soon", None), (500, "3", None)]:
        with pytest.raises(weir.Error) as e:
            ask(lambda _, s=status, h=header: httpx.Response(s, headers={"Retry-After": h}))  # type: ignore[misc]
        assert e.value.retry_after == want


def test_token() -> None:
    tokens: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        tokens.append(request.headers["Authorization"])
        return httpx.Response(200, content=answer({"f": feature()}))

    ask(handler, client={"token": "a"})
    given = iter(["b", "c\n"])
    with weir.Client(ADDRESS, token=lambda: next(given), transport=httpx.MockTransport(handler)) as client:
        client.feature("f", user_id="u")
        client.feature("f", user_id="u")
    assert tokens == ["Bearer a", "Bearer b", "Bearer c"]


@pytest.mark.parametrize("token", ["secret\nsecret", "s\u00e9cret"])
def test_tokens_that_cannot_be_sent(token: str) -> None:
    with pytest.raises(weir.WeirError, match="^the token has characters that no header may have$"):
        ask(lambda _: httpx.Response(200, content=answer({"f": feature()})), client={"token": token})


def test_keys_of_any_name() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content) == {"features": ["f"], "entities": [{"name": "n", "self": "s"}]}
        return httpx.Response(200, content=answer({"f": feature()}))

    with weir.Client(ADDRESS, transport=httpx.MockTransport(handler)) as client:
        assert client.feature("f", **{"name": "n", "self": "s"}).value == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_every_failure_is_a_weir_error(asynchronous: bool) -> None:
    """So a rule engine that catches it decides whatever happens."""
    asked = 0

    def handler(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return httpx.Response(200, headers={"Content-Encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))

    def away() -> str:
        raise httpx.ConnectError("the issuer is away")

    with pytest.raises(weir.Unreachable, match="DecodingError"):
        ask(handler, asynchronous)
    with pytest.raises(weir.WeirError, match="no token: .*the issuer is away"):
        ask(handler, asynchronous, {"token": away})
    assert asked == 1


@pytest.mark.parametrize("client", [weir.Client, weir.AsyncClient])
@pytest.mark.parametrize("address", ["", "localhost:8080", "http://", "http://weir:80a", "http://weir:99999", "ftp://weir", "http://weir\n"])
def test_malformed_addresses(client: type[weir.Client] | type[weir.AsyncClient], address: str) -> None:
    with pytest.raises(weir.WeirError, match="^the address is malformed: "):
        client(address)


def test_closed_clients() -> None:
    closed = weir.Client(ADDRESS)
    closed.close()
    with pytest.raises(weir.WeirError, match="the client has been closed"):
        closed.feature("f", user_id="u")

    async def run() -> None:
        client = weir.AsyncClient(ADDRESS)
        await client.close()
        with pytest.raises(weir.WeirError, match="the client has been closed"):
            await client.feature("f", user_id="u")

    asyncio.run(run())


@pytest.mark.parametrize(("client", "made"), [(weir.Client, "Client"), (weir.AsyncClient, "AsyncClient")])
def test_idle_connections_are_kept(client: type[weir.Client] | type[weir.AsyncClient], made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For longer than the pauses between questions, but not until the server closes them, after two minutes."""
    given: list[httpx.Limits] = []
    monkeypatch.setattr(httpx, made, lambda limits: given.append(limits))
    client(ADDRESS)
    expiry = given[0].keepalive_expiry
    assert expiry is not None and 60 <= expiry < 120


def test_frame() -> None:
    pandas = pytest.importorskip("pandas")
    asked: list[Any] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        entities = asked[-1]["entities"]
        values = [{"f": feature(value=int(e["user_id"] or "0")), "g": feature(status="NOT_FOUND", exact=False)} for e in entities]
        return httpx.Response(200, content=answer(*values))

    rows = pandas.DataFrame({"user_id": ["1", "2", None], "age": [7, None, 9]}, index=[5, 3, 4])
    with weir.Client(ADDRESS, transport=httpx.MockTransport(handler)) as client:
        frame = client.frame(rows, service="s", batch=2, quality=True)
    assert list(frame.index) == [5, 3, 4]
    assert frame["f"].tolist() == [1, 2, 0]
    assert frame["g__status"].tolist() == ["NOT_FOUND"] * 3 and frame["f__exact"].tolist() == [True] * 3
    # A missing key is null: the server refuses all rows if one lacks a key.
    assert [q["entities"] for q in asked] == [[{"user_id": "1", "age": 7}, {"user_id": "2", "age": None}], [{"user_id": None, "age": 9}]]
    assert [q.get("at") for q in asked] == [None, 1000]  # all rows have one moment


def test_frame_names_the_row_that_is_refused() -> None:
    pandas = pytest.importorskip("pandas")

    def handler(request: httpx.Request) -> httpx.Response:
        entities = json.loads(request.content)["entities"]
        if {"user_id": 4} in entities:
            error = {"code": "wrong_type", "message": "4 is no string", "key": "user_id", "entity": entities.index({"user_id": 4})}
            return httpx.Response(400, json={"error": error})
        return httpx.Response(200, content=answer(*[{"f": feature()}] * len(entities)))

    with weir.Client(ADDRESS, transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(weir.Error) as raised:
            client.frame(pandas.DataFrame({"user_id": ["1", None, "3", 4]}), features=["f"], batch=2)
    assert (str(raised.value), raised.value.entity, raised.value.key) == ("row 3: 4 is no string (wrong_type)", 3, "user_id")


def test_frame_keeps_the_digits_of_integers() -> None:
    pandas = pytest.importorskip("pandas")
    values = iter([{"id": 2**53 + 1, "n": 1, "x": 2**60}, {"id": None, "n": None, "x": 0.5}])

    def handler(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=answer({name: feature(value=value) for name, value in next(values).items()}))

    with weir.Client(ADDRESS, transport=httpx.MockTransport(handler)) as client:
        frame = client.frame(pandas.DataFrame({"user_id": ["1", "2"]}, index=[7, 7]), service="s", batch=1)
    assert frame["id"].tolist() == [2**53 + 1, None]
    assert (frame["n"].dtype, frame["x"].dtype, list(frame.index)) == ("float64", "float64", [7, 7])
