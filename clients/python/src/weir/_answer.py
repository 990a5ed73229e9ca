from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any


class Status(str, Enum):
    """What a value rests on. A later server may send others, which are then plain strings."""

    PRESENT = "PRESENT"
    """Computed from events in the window."""
    NULL_VALUE = "NULL_VALUE"
    """Events in the window, but no value."""
    NOT_FOUND = "NOT_FOUND"
    """No event in the window: the neutral value, such as 0 of a count."""
    INCOMPLETE = "INCOMPLETE"
    """Of the window's events since `complete_since` only: the feature is younger than its window."""
    OUTSIDE_MAX_AGE = "OUTSIDE_MAX_AGE"
    """The moment lies further back than what is kept."""
    UNAVAILABLE = "UNAVAILABLE"
    """The part of the store that holds the entity does not answer: there is no value. Ask again later."""
    DAMAGED = "DAMAGED"
    """The state of the entity cannot be read: there is no value until an operator has mended it."""


@dataclass(frozen=True)
class Member:
    """Whether an entity has met a value that the question names."""

    member: Any
    met: bool
    status: Status | str


@dataclass(frozen=True)
class Feature:
    """What is answered of one feature. Times are those of events, in UTC."""

    value: Any
    """None, a number, string or bool, or lists and dicts of them; None too where `members` are answered."""
    status: Status | str | None
    """None where `members` are answered: each has its own."""
    start: datetime | None
    """The first millisecond that the value covers; None for a lifetime. `from` on the wire."""
    end: datetime
    """The last millisecond that the value covers. `to` on the wire."""
    exact: bool
    """The value is exactly that of the events in the window."""
    standard_error: float | None = None
    """The relative standard error of an estimate."""
    relative_error: float | None = None
    """How far off the value may lie at the most, as a share of it."""
    false_positive_rate: float | None = None
    """The probability at the most with which a value that was not met is said to have been."""
    uncertain: int = 0
    """How much greater than stated the value may be."""
    capped: bool = False
    """More was met than the feature keeps."""
    complete_since: datetime | None = None
    """From when on the state holds all events; None: all there ever were."""
    oldest: datetime | None = None
    """With OUTSIDE_MAX_AGE, the oldest moment that can be asked for."""
    members: tuple[Member, ...] = ()
    """Of the members that the question names, in their order."""


@dataclass(frozen=True)
class Result(Mapping[str, Feature]):
    """What is answered of one entity: its features by their names."""

    entity: dict[str, Any]
    features: dict[str, Feature]

    def __getitem__(self, name: str) -> Feature:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)


@dataclass(frozen=True)
class PendingOutcome:
    """What a pending event was taken for."""

    stream: str
    time: datetime
    deduplicated: bool
    """It was not counted again if it has arrived meanwhile."""
    late: bool
    """It came too late for some features, which do not count it."""


@dataclass(frozen=True)
class Answer:
    at: datetime
    results: tuple[Result, ...]
    """Of the entities, in their order."""
    pending: tuple[PendingOutcome, ...] = ()
    """Of the pending events, in their order."""
    applied: bool | None = None
    """Whether the record of `wait_for` is in the results; None without one."""
    read_from: str | None = None
    """replica if any of the state was read from one; None where the server reads from masters only."""
    staleness: timedelta | None = None
    """How old the state may be that was read from a replica."""


def decode(body: bytes, decimals: bool) -> Answer:
    """The answer of a body; AttributeError, KeyError, TypeError or ValueError where it is none."""
    wire = json.loads(body, parse_float=Decimal if decimals else float)
    waited, stale = wire.get("waited"), wire.get("staleness_ms")
    return Answer(
        at=_moment(wire["at"]),
        results=tuple(
            Result(r["entity"], {name: _feature(f) for name, f in r["features"].items()}) for r in wire["results"]
        ),
        pending=tuple(
            PendingOutcome(p["stream"], _moment(p["time"]), p["deduplicated"], p.get("late", False))
            for p in wire.get("pending", ())
        ),
        applied=waited and waited["applied"],
        read_from=wire.get("read_from"),
        staleness=None if stale is None else timedelta(milliseconds=stale),
    )


def _feature(wire: dict[str, Any]) -> Feature:
    return Feature(
        value=wire.get("value"),
        status=_status(wire["status"]) if "status" in wire else None,
        start=_moment_or_none(wire["from"]),
        end=_moment(wire["to"]),
        exact=wire["exact"],
        standard_error=_float(wire.get("standard_error")),
        relative_error=_float(wire.get("relative_error")),
        false_positive_rate=_float(wire.get("false_positive_rate")),
        uncertain=wire.get("uncertain", 0),
        capped=wire.get("capped", False),
        complete_since=_moment_or_none(wire.get("complete_since")),
        oldest=_moment_or_none(wire.get("oldest")),
        members=tuple(Member(m["member"], m["value"], _status(m["status"])) for m in wire.get("members", ())),
    )


def _status(wire: str) -> Status | str:
    return Status(wire) if wire in Status._value2member_map_ else wire


def _float(wire: Any) -> float | None:
    return None if wire is None else float(wire)


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def _moment(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _moment_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else _moment(ms)
