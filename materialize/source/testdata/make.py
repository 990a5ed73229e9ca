"""Makes types.parquet, hive.parquet and rare.parquet, files as other programs write them (pyarrow 26)."""
import datetime as dt
import decimal

import pyarrow as pa
import pyarrow.parquet as pq

at = dt.datetime(2026, 1, 31, 23, 59, 59, 123456)
rows = 3


def nulled(*values, type):
    return pa.array(list(values), type)


table = pa.table({
    "text": nulled("a", None, 'c"\n', type=pa.string()),
    "dictionary": pa.array(["x", None, "x"], pa.string()).dictionary_encode(),
    "int32": nulled(-1, None, 2**31 - 1, type=pa.int32()),
    "int64": nulled(-2**63, None, 2**63 - 1, type=pa.int64()),
    "uint32": nulled(0, None, 2**32 - 1, type=pa.uint32()),
    "uint64": nulled(0, None, 2**64 - 1, type=pa.uint64()),
    "float32": nulled(0.5, None, 1e-7, type=pa.float32()),
    "double": nulled(0.1, None, float("nan"), type=pa.float64()),
    "bool": nulled(True, None, False, type=pa.bool_()),
    "decimal": nulled(decimal.Decimal("-1.50"), None, decimal.Decimal("12345678901234567890.12"), type=pa.decimal128(38, 2)),
    "small_decimal": nulled(decimal.Decimal("1.5"), None, decimal.Decimal("-0.1"), type=pa.decimal128(5, 1)),
    "ms": nulled(at, None, dt.datetime(1969, 12, 31, 23, 59, 59, 999000), type=pa.timestamp("ms", "UTC")),
    "us": nulled(at, None, at, type=pa.timestamp("us", "Europe/Paris")),
    "ns": nulled(at, None, at, type=pa.timestamp("ns")),
    "date": nulled(at.date(), None, dt.date(1969, 12, 31), type=pa.date32()),
    "group": pa.array([{"inner": "i", "lat": 1.5}, None, {"inner": None, "lat": -1.0}], pa.struct([("inner", pa.string()), ("lat", pa.float64())])),
    "list": nulled([1, 2], None, [], type=pa.list_(pa.int64())),
})
pq.write_table(table, "types.parquet", row_group_size=2, store_decimal_as_integer=True)
pq.write_table(table.select(["ns", "text"]), "hive.parquet", use_deprecated_int96_timestamps=True, compression="gzip", data_page_version="2.0")

rare = pa.table({
    "empty": ["", "", "x", ""],
    "nothing": pa.nulls(4),
    "fixed": pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2)),
})
pq.write_table(rare, "rare.parquet")
