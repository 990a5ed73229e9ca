"""The Fraud Detection Handbook's features in DuckDB: INPUT.csv.gz to OUTPUT.csv, on one thread."""

import sys

import duckdb

source, target = sys.argv[1:3]
DAYS = (1, 7, 30)

# Windows exclude their start: one of a day ends a microsecond (the finest of DuckDB) before a full day.
windows = [
    f"c{n} AS (PARTITION BY CUSTOMER_ID ORDER BY TX_DATETIME "
    f"RANGE BETWEEN INTERVAL {n} DAYS - INTERVAL 1 MICROSECOND PRECEDING AND CURRENT ROW)"
    for n in DAYS
] + [
    f"t{n} AS (PARTITION BY TERMINAL_ID ORDER BY TX_DATETIME "
    f"RANGE BETWEEN INTERVAL {n + 7} DAYS - INTERVAL 1 MICROSECOND PRECEDING AND INTERVAL 7 DAYS PRECEDING)"
    for n in DAYS
]
columns = (
    ["TRANSACTION_ID", "(isodow(TX_DATETIME) >= 6)::INT AS TX_DURING_WEEKEND", "(hour(TX_DATETIME) <= 6)::INT AS TX_DURING_NIGHT"]
    + [f"count(*) OVER c{n} AS CUSTOMER_ID_NB_TX_{n}DAY_WINDOW" for n in DAYS]
    + [f"avg(TX_AMOUNT) OVER c{n} AS CUSTOMER_ID_AVG_AMOUNT_{n}DAY_WINDOW" for n in DAYS]
    + [f"count(*) OVER t{n} AS TERMINAL_ID_NB_TX_{n}DAY_WINDOW" for n in DAYS]
    + [f"coalesce(sum(TX_FRAUD) OVER t{n} / nullif(count(*) OVER t{n}, 0), 0) AS TERMINAL_ID_RISK_{n}DAY_WINDOW" for n in DAYS]
)
connection = duckdb.connect()
connection.execute("SET threads = 1")
connection.execute("SET preserve_insertion_order = false")
connection.execute(
    f"COPY (SELECT {', '.join(columns)} FROM read_csv(?) WINDOW {', '.join(windows)}) TO '{target}'", [source]
)
