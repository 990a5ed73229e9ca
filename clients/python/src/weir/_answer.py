from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any


class Status(str, Enum):
    """What a value is based on. Unknown statuses of a later server are plain strings."""

    PRESENT = "PRESENT"
    """Computed from events in the window."""
    NULL_VALUE = "NULL_VALUE"
    """There are events in the window, but no value."""
    NOT_FOUND = "NOT_FOUND"
    """No event in the window: the neutral value, such as 0 of a count."""
    INCOMPLETE = "INCOMPLETE"
    """Computed from the window's events since `complete_since` only: the feature is younger than its window."""
    LATER_EVENTS = "LATER_EVENTS"
    """The moment lies in the past, and the value may count events after it."""
    NO_EVENT = "NO_EVENT"
    """The feature reads the event in hand, and the question has none: there is no value."""
    OUTSIDE_MAX_AGE = "OUTSIDE_MAX_AGE"
    """The moment is older than the state that is kept."""
    UNAVAILABLE = "UNAVAILABLE"
    """The part of the store that holds the entity does not answer: there is no value. Ask again later."""
    DAMAGED = "DAMAGED"
    """The state of the entity cannot be read: there is no value until an operator repairs it."""


_KNOWN = (Status.PRESENT, Status.NULL_VALUE, Status.NOT_FOUND)


@dataclass(frozen=True)
class Member:
    """Whether a member that the question names occurred for an entity. Each member has a status of its own."""

    member: Any
    met: bool | None
    """None if it is unknown, which is not False: look at `known` first."""
    status: Status | str

    @property
    def known(self) -> bool:
        """Whether it is known if the member occurred: `met` is not None, and covers the whole window and nothing after it."""
        return self.met is not None and self.status in _KNOWN


@dataclass(frozen=True)
class Feature:
    """The answer for one feature. Times are event times, in UTC."""

    value: Any
    """None, a number, string or bool, or lists and dicts of them; also None if there are `members`."""
    status: Status | str | None
    """None if there are `members`: each has its own, see `Member.known`."""
    start: datetime | None
    """The first millisecond that the value covers; None for a lifetime. `from` on the wire."""
    end: datetime
    """The last millisecond that the value covers. `to` on the wire."""
    exact: bool
    """Whether the value is exact for the events in the window."""
    standard_error: float | None = None
    """The relative standard error of an estimate."""
    relative_error: float | None = None
    """The maximum relative error of the value."""
    false_positive_rate: float | None = None
    """The maximum probability that a value which did not occur is reported as one that did."""
    uncertain: int = 0
    """By how much the true value may exceed the stated one."""
    capped: bool = False
    """Whether a bound of the feature left something out."""
    later_events: bool = False
    """Whether the value may count events after the moment, which lies in the past."""
    complete_since: datetime | None = None
    """The time since which the state holds all events; None if it holds all there ever were."""
    complete_at: datetime | None = None
    """For an INCOMPLETE answer: by when the feature is complete at the latest, without a backfill; None if that is never or unknown."""
    filled: float | None = None
    """For an INCOMPLETE answer during a backfill: the share of missing records applied so far."""
    oldest: datetime | None = None
    """For OUTSIDE_MAX_AGE, the oldest moment that can be asked for."""
    members: tuple[Member, ...] = ()
    """One for each member that the question names, in their order."""

    @property
    def known(self) -> bool:
        """Whether the value covers its whole window and nothing after it, so that a rule may use it.

        The status is PRESENT, NULL_VALUE or NOT_FOUND. A feature with `members` is known if all of them are.

        Never take what is not known for 0, which approves. INCOMPLETE and LATER_EVENTS come with a value, but events are
        missing from it, or too many in it. A known value may be None, such as an average without events.
        """
        return all(m.known for m in self.members) if self.members else self.status in _KNOWN


@dataclass(frozen=True)
class Result(Mapping[str, Feature]):
    """The features of one entity, by name."""

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
    """How a pending event was read."""

    stream: str
    time: datetime
    deduplicated: bool
    """Whether it counts only once if it has been applied meanwhile."""
    late: bool
    """Whether it came too late for some features, which do not count it."""
    uncounted: bool = False
    """Whether no answer counts it: it is of other entities than those asked about, or no feature selects it."""
    met: datetime | None = None
    """When the record that already has the event's ID was written, to the second: the earliest that the entities asked about
    remember; None if none does. They do not count the event again. If it is long before `time`, the ID may have been reused
    for another event."""


@dataclass(frozen=True)
class Answer:
    at: datetime
    results: tuple[Result, ...]
    """One for each entity, in the order of the question."""
    pending: tuple[PendingOutcome, ...] = ()
    """One for each pending event, in the order of the question."""
    applied: bool | None = None
    """Whether the record of `wait_for` is in the results; None without one."""
    nothing_applied: bool = False
    """Whether it is not because no record of that partition was ever applied: perhaps there is no such partition."""
    read_from: str | None = None
    """replica if any of the state was read from one; None if the server reads from masters only."""
    staleness: timedelta | None = None
    """The maximum age of state read from a replica."""
    table_lag: timedelta | None = None
    """How long before the answer, at the most, all rows were known of the tables that features look up; None if they look up
    none, or none that the server has read yet."""


def decode(body: bytes, decimals: bool) -> Answer:
    """Decodes an answer. An invalid body raises AttributeError, KeyError, OverflowError, RecursionError, TypeError or ValueError."""
    wire = json.loads(body, parse_float=Decimal if decimals else float)
    waited, stale, lag = wire.get("waited"), wire.get("staleness_ms"), wire.get("table_lag_ms")
    return Answer(
        at=_moment(wire["at"]),
        results=tuple(
            Result(r["entity"], {name: _feature(f) for name, f in r["features"].items()}) for r in wire["results"]
        ),
        pending=tuple(
            PendingOutcome(
                p["stream"], _moment(p["time"]), p["deduplicated"], p.get("late", False), p.get("uncounted", False), _moment_or_none(p.get("met"))
            )
            for p in wire.get("pending", ())
        ),
        applied=waited and waited["applied"],
        nothing_applied=bool(waited and waited.get("nothing_applied", False)),
        read_from=wire.get("read_from"),
        staleness=None if stale is None else timedelta(milliseconds=stale),
        table_lag=None if lag is None else timedelta(milliseconds=lag),
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
        later_events=wire.get("later_events", False),
        complete_since=_moment_or_none(wire.get("complete_since")),
        complete_at=_moment_or_none(wire.get("complete_at")),
        filled=_float(wire.get("filled")),
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
