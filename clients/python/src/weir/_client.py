from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import httpx

from ._answer import Answer, Feature, decode
from ._errors import WeirError
from ._question import Event, Record, encode
from ._retry import Retries, broken, failed

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
        """It connects when it is asked.

        Args:
            address: Such as http://localhost:8080.
            token: A bearer token, or a function that gives one for each request, for tokens that expire.
            timeout: Seconds for a question. No attempt begins later, and none waits longer for a connection or for the
                server's next bytes.
            retries: How a question is asked again.
            decimals: Numbers with digits behind the point are Decimals, with all their digits, and not floats.
            http: Further arguments of httpx' client, such as verify, cert, proxy or transport.
        """
        self._url = address.rstrip("/") + "/v1/query"
        self._token, self._timeout, self._retries, self._decimals = token, timeout, retries, decimals
        self._open({"limits": httpx.Limits(max_connections=None, max_keepalive_connections=100)} | http)

    def _open(self, arguments: dict[str, Any]) -> None:
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._token is not None:
            token = self._token if isinstance(self._token, str) else self._token()
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _read(self, body: bytes) -> Answer:
        try:
            return decode(body, self._decimals)
        except (AttributeError, KeyError, TypeError, ValueError) as e:
            raise WeirError(f"the answer cannot be read: {e!r}") from e


class Client(_Base):
    """Asks one server, or several behind one address; threads may share it."""

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
        wait_for: Record | None = None,
    ) -> Answer:
        """Asks for features of entities at a moment.

        Args:
            entities: The values of the keys that the features need, each entity answered by itself, in their order.
            features: Names of features.
            service: The name of a service, which stands for its features.
            at: The moment, with a time zone or in milliseconds since 1970; by default the present one, or that of the
                latest pending event.
            members: Values of which the features shall say whether the entities have met them, for all features or by
                their names.
            pending: Events that are not on the bus yet and shall count as if they were.
            wait_for: A record that was written and shall count: the answer waits for it.

        Raises:
            Error: The server has refused the question, or failed.
            Unreachable: No answer came in time.
        """
        body = encode(features, service, entities, at, members, pending, wait_for)
        deadline, n = time.monotonic() + self._timeout, 0
        failure: WeirError
        while True:
            n += 1
            left = deadline - time.monotonic()
            try:
                response = self._http.post(self._url, content=body, headers=self._headers(), timeout=left)
                if response.status_code == 200:
                    return self._read(response.content)
                failure, after = failed(response)
            except httpx.TransportError as e:
                failure, after = broken(e)
            time.sleep(self._retries.wait(n, failure, after, deadline - time.monotonic()))

    def feature(self, name: str, **keys: Any) -> Feature:
        """One feature of one entity at the present moment: `client.feature("device_tx_7d", device_id="d000001")`."""
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
        """Values for the entities of a DataFrame's rows: a column for each feature, with the index of the rows.

        Args:
            entities: Columns are keys.
            features: Names of features.
            service: The name of a service.
            at: The moment of all rows; by default that of the first batch, so that all rows are of one moment.
            quality: Adds the columns `<feature>__status` and `<feature>__exact`.
            batch: Rows in one question; the server bounds rows times features (api.max_values).
        """
        import pandas as pd

        rows = entities.astype(object).to_dict("records")
        names = None if features is None else list(features)
        columns: list[dict[str, Any]] = []
        for begin in range(0, len(rows), batch):
            keys = [{str(k): v for k, v in row.items() if not _missing(v)} for row in rows[begin : begin + batch]]
            answer = self.query(features=names, service=service, entities=keys, at=at)
            at = answer.at
            for result in answer.results:
                row: dict[str, Any] = {}
                for name, feature in result.items():
                    row[name] = feature.value
                    if quality:
                        row[f"{name}__status"] = feature.status and str(getattr(feature.status, "value", feature.status))
                        row[f"{name}__exact"] = feature.exact
                columns.append(row)
        return pd.DataFrame(columns, index=entities.index)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Base):
    """Asks one server, or several behind one address, from asyncio or trio; tasks may share it."""

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
        wait_for: Record | None = None,
    ) -> Answer:
        """As `Client.query`."""
        body = encode(features, service, entities, at, members, pending, wait_for)
        deadline, n = time.monotonic() + self._timeout, 0
        failure: WeirError
        while True:
            n += 1
            left = deadline - time.monotonic()
            try:
                response = await self._http.post(self._url, content=body, headers=self._headers(), timeout=left)
                if response.status_code == 200:
                    return self._read(response.content)
                failure, after = failed(response)
            except httpx.TransportError as e:
                failure, after = broken(e)
            await anyio.sleep(self._retries.wait(n, failure, after, deadline - time.monotonic()))

    async def feature(self, name: str, **keys: Any) -> Feature:
        """As `Client.feature`."""
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


def _missing(value: Any) -> bool:
    """None, NaN, NaT and NA: an entity without the key."""
    return value is None or value != value or type(value).__name__ == "NAType"
