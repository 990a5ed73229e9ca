"""Tests against a running server."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from typing import Any

import pytest

import weir

KEYS = {"user_id": "u000001", "device_id": "d000001", "card_id": "c000001"}


def test_service(server: str) -> None:
    with weir.Client(server, timeout=60) as client:
        result = client.query(service="payment_risk", entities=[KEYS, {**KEYS, "user_id": "nobody"}]).results
        assert result[0]["user_tx_lifetime"].status is weir.Status.PRESENT
        assert result[0]["user_tx_lifetime"].value > 0 and result[0]["user_tx_lifetime"].exact
        assert result[1]["user_tx_lifetime"].status is weir.Status.NOT_FOUND
        assert result[0].entity == KEYS
        assert client.feature("user_tx_lifetime", user_id="u000001").value == result[0]["user_tx_lifetime"].value


def test_pending_event(server: str) -> None:
    payment = {
        "type": "transaction",
        "event_id": "p1",
        "timestamp": int(time.time() * 1000),
        "user_id": "newcomer",
        "device_id": "d000001",
        "amount": Decimal("12.50"),
    }
    with weir.Client(server, timeout=60, decimals=True) as client:
        question: Any = {"features": ["user_tx_1h", "user_amount_1d"], "entities": [{"user_id": "newcomer"}]}
        answer = client.query(**question, pending=[weir.Event("transaction", payment)])
        assert (answer.results[0]["user_tx_1h"].value, answer.results[0]["user_amount_1d"].value) == (1, Decimal("12.50"))
        assert (answer.pending[0].stream, answer.pending[0].late) == ("transaction", False)
        assert client.query(**question).results[0]["user_tx_1h"].value == 0  # it was not written
        with pytest.raises(weir.Error) as e:
            client.query(**question, pending=[weir.Event("transaction", payment | {"amount": "much"})])
    assert (e.value.code, e.value.event, e.value.path) == ("bad_event", 0, "amount")


def test_members(server: str) -> None:
    with weir.Client(server, timeout=60) as client:
        answer = client.query(features=["card_merchants_7d"], entities=[KEYS, {"card_id": None}], members=["m0", "m1"])
    known, null = (r["card_merchants_7d"] for r in answer.results)
    assert [(m.member, m.known) for m in known.members] == [("m0", True), ("m1", True)] and known.known
    assert [(m.member, m.met, m.known) for m in null.members] == [("m0", None, False), ("m1", None, False)] and not null.known


def test_a_partition_of_which_nothing_was_applied(server: str) -> None:
    with weir.Client(server, timeout=60) as client:
        answer = client.query(features=["user_tx_1h"], entities=[KEYS], wait_for=weir.Record("transactions", 1_000_000, 0, timeout=0.001))
    assert (answer.applied, answer.nothing_applied) == (False, True)


def test_refusals(server: str) -> None:
    with weir.Client(server, timeout=60) as client, pytest.raises(weir.Error) as e:
        client.feature("user_tx_lifetimes", user_id="u")
    assert (e.value.code, e.value.nearest) == ("unknown_feature", "user_tx_lifetime")
    with weir.Client("http://127.0.0.1:1", retries=weir.Retries(attempts=1)) as client, pytest.raises(weir.Unreachable):
        client.feature("f", user_id="u")


def test_many_at_once(server: str) -> None:
    async def run() -> list[weir.Feature]:
        async with weir.AsyncClient(server, timeout=60) as client:
            return await asyncio.gather(*(client.feature("user_tx_lifetime", user_id=f"u{i:06}") for i in range(200)))

    assert len(asyncio.run(run())) == 200


def test_frame(server: str) -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"user_id": [f"u{i:06}" for i in range(450)]})
    with weir.Client(server, timeout=60) as client:
        frame = client.frame(rows, features=["user_tx_lifetime"])
    assert 0 < frame["user_tx_lifetime"].sum() <= 2000
    assert list(frame.index) == list(rows.index)


def test_frame_with_missing_keys(server: str) -> None:
    pandas = pytest.importorskip("pandas")
    with weir.Client(server, timeout=60) as client:
        frame = client.frame(pandas.DataFrame({"user_id": ["u000001", None, pandas.NA]}), features=["user_tx_lifetime"], quality=True)
        with pytest.raises(weir.Error, match="row 201: .*wrong_type") as e:
            client.frame(pandas.DataFrame({"user_id": [None] * 201 + [7]}), features=["user_tx_lifetime"])
    assert frame["user_tx_lifetime__status"].tolist() == ["PRESENT", "NOT_FOUND", "NOT_FOUND"]
    assert frame["user_tx_lifetime"].isna().tolist() == [False, True, True]
    assert e.value.entity == 201
