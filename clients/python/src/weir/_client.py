from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from ._answer import Answer, Feature, decode
from ._errors import Error, Unreachable, WeirError
from ._question import Event, Record, encode
from ._retry import Attempts, Retries

if TYPE_CHECKING:
    import pandas as pd

Token = str | Callable[[], str]


class _Base:
    def __init__(
        self,
        address: str,
        *,
        token: Token | None = None,
        timeout: float = 2.0,
        retries: Retries = Retries(),
        decimals: bool = False,
        **http: Any,
    ) -> None:
        """Connects with the first question.

        Args:
            address: Such as http://localhost:8080.
            token: A bearer token, or a function that returns one for each request, for tokens that expire.
            timeout: Seconds for a question, over all attempts. AsyncClient keeps to it. Client begins no attempt later,
                but may wait as long for the name's address, for a connection, and for each part of the answer.
            retries: How a question is asked again.
            decimals: Numbers with digits after the decimal point are Decimals, with all their digits, and not floats.
            http: Further arguments of httpx' client, such as verify, cert, proxy or transport.

        Raises:
            WeirError: The address is malformed.
        """
        self._url = _endpoint(address)
        self._token, self._timeout, self._retries, self._decimals = token, timeout, retries, decimals
        # The server keeps idle connections for two minutes, httpx by default for 5 s.
        self._open({"limits": httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=90)} | http)

    def _open(self, arguments: dict[str, Any]) -> None:
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            try:
                token = self._token if isinstance(self._token, str) else self._token()
            except Exception as e:
                raise WeirError(f"no token: {e!r}") from e
            token = token.strip()  # a file of a token ends with a line end
            if not (token.isascii() and token.isprintable()):
                raise WeirError("the token has characters that no header may have")  # httpx' error would have the token
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _read(self, response: httpx.Response) -> Answer:
        if response.status_code != 200:
            raise Error.read(response)
        try:
            return decode(response.content, self._decimals)
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as e:
            raise WeirError(f"the answer cannot be read: {e!r}") from e


class Client(_Base):
    """A client of one server, or of several behind one address; threads may share it."""

    def _open(self, arguments: dict[str, Any]) -> None:
        self._http = httpx.Client(**arguments)

    def query(
        self,
        *,
        entities: Iterable[Mapping[str, Any]],
        features: Iterable[str] | None = None,
        service: str | None = None,
        at: datetime | int | None = None,
        members: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        pending: Iterable[Event] | None = None,
        event: Event | None = None,
        wait_for: Record | None = None,
    ) -> Answer:
        """Asks for features of entities at a moment.

        Args:
            entities: The values of the keys that the features need, one result for each entity, in their order.
            features: Names of features.
            service: The name of a service, which selects its features.
            at: The moment, with a time zone or in milliseconds since 1970; by default now, or the time of the
                latest event, pending or in hand.
            members: Values of which the answers say whether they occurred for the entity, for all features or by
                feature name.
            pending: Events to count as if they were on the bus already.
            event: The event in hand, for features that read its fields: it is only looked at, and does not count. Without
                it the latest of `pending` is in hand.
            wait_for: A record that was written: the answer waits until it is applied.

        Raises:
            Error: The server refused the question or failed to answer it.
            Unreachable: No answer came in time.
            WeirError: There is no answer for another reason: no token, an unreadable answer, a closed client.
        """
        body = encode(features, service, entities, at, members, pending, event, wait_for)
        attempts = Attempts(self._retries, self._timeout)
        while True:
            try:
                return self._read(self._http.post(self._url, content=body, headers=self._headers(), timeout=attempts.left()))
            except (Error, httpx.RequestError) as e:
                time.sleep(attempts.wait(e))
            except WeirError:
                raise
            except Exception as e:  # such as httpx' RuntimeError of a closed client
                raise WeirError(f"no answer: {e!r}") from e

    def feature(self, name: str, /, **keys: Any) -> Feature:
        """Asks for one feature of one entity, as of now: `client.feature("device_tx_7d", device_id="d000001")`."""
        return self.query(features=[name], entities=[keys]).results[0][name]

    def frame(
        self,
        entities: pd.DataFrame,
        *,
        features: Iterable[str] | None = None,
        service: str | None = None,
        at: datetime | int | None = None,
        quality: bool = False,
        batch: int = 200,
    ) -> pd.DataFrame:
        """Returns the features of the entities in a DataFrame's rows: a column for each feature, with the rows' index.

        Args:
            entities: Columns are keys. None, NaN, NaT and NA are null keys, whose features have no value and are NOT_FOUND.
            features: Names of features.
            service: The name of a service.
            at: The moment of all rows; by default that of the first batch, which is a little in the past for the later ones: what
                has happened since may make their features `LATER_EVENTS`.
            quality: Adds the columns `<feature>__status` and `<feature>__exact`. Without them nothing tells an INCOMPLETE value
                from a complete one.
            batch: Rows in one question; the server limits rows times features (api.max_values).

        Raises:
            Error: The server refused a question; `entity` is the number of the row, from 0.
            Unreachable: No answer came in time.
        """
        import pandas as pd

        rows = entities.astype(object).to_dict("records")
        names = None if features is None else list(features)
        columns: list[dict[str, Any]] = []
        for begin in range(0, len(rows), batch):
            keys = [{str(k): None if _missing(v) else v for k, v in row.items()} for row in rows[begin : begin + batch]]
            try:
                answer = self.query(features=names, service=service, entities=keys, at=at)
            except Error as e:
                if e.entity is None:
                    raise
                raise e.of_row(begin + e.entity) from e
            at = answer.at
            for result in answer.results:
                row: dict[str, Any] = {}
                for name, feature in result.items():
                    row[name] = feature.value
                    if quality:
                        row[f"{name}__status"] = feature.status and str(getattr(feature.status, "value", feature.status))
                        row[f"{name}__exact"] = feature.exact
                columns.append(row)
        frame = pd.DataFrame(columns, index=entities.index)
        for name in frame.columns[frame.dtypes == "float64"]:
            values = [row[name] for row in columns]
            if any(isinstance(v, int) and abs(v) > 2**53 for v in values) and not any(isinstance(v, float) for v in values):
                # pandas makes floats of integers beside a None, which have fewer digits.
                frame[name] = pd.Series(values, index=frame.index, dtype=object)
        return frame

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Base):
    """A client of one server, or of several behind one address, for asyncio or trio; tasks may share it."""

    def _open(self, arguments: dict[str, Any]) -> None:
        self._http = httpx.AsyncClient(**arguments)

    async def query(
        self,
        *,
        entities: Iterable[Mapping[str, Any]],
        features: Iterable[str] | None = None,
        service: str | None = None,
        at: datetime | int | None = None,
        members: Iterable[Any] | Mapping[str, Iterable[Any]] | None = None,
        pending: Iterable[Event] | None = None,
        event: Event | None = None,
        wait_for: Record | None = None,
    ) -> Answer:
        """See `Client.query`."""
        body = encode(features, service, entities, at, members, pending, event, wait_for)
        attempts = Attempts(self._retries, self._timeout)
        while True:
            try:
                with anyio.fail_after(attempts.left()):  # httpx' own timeout is that of each step
                    response = await self._http.post(self._url, content=body, headers=self._headers(), timeout=attempts.left())
                return self._read(response)
            except TimeoutError as e:
                raise Unreachable("there was no answer in time") from e
            except (Error, httpx.RequestError) as e:
                await anyio.sleep(attempts.wait(e))
            except WeirError:
                raise
            except Exception as e:
                raise WeirError(f"no answer: {e!r}") from e

    async def feature(self, name: str, /, **keys: Any) -> Feature:
        """See `Client.feature`."""
        return (await self.query(features=[name], entities=[keys])).results[0][name]

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _endpoint(address: str) -> httpx.URL:
    try:
        url = httpx.URL(address.rstrip("/") + "/v1/query")
    except httpx.InvalidURL as e:
        raise WeirError(f"the address is malformed: {e}") from e
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
        raise WeirError("the address is malformed: it must be of the form http://localhost:8080")
    return url


def _missing(value: Any) -> bool:
    """Reports None, NaN, NaT and NA."""
    return value is None or value != value or type(value).__name__ == "NAType"
