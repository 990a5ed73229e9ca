"""The Fraud Detection Handbook's features in pandas, in the way of its authors: INPUT.csv.gz to OUTPUT.csv."""

import sys

import pandas as pd

source, target = sys.argv[1:3]
DAYS = (1, 7, 30)


def of_customer(rows):
    rows = rows.sort_values("TX_DATETIME")
    amounts = rows.set_index("TX_DATETIME")["TX_AMOUNT"]
    for n in DAYS:
        window = amounts.rolling(f"{n}D")
        count = window.count()
        rows[f"CUSTOMER_ID_NB_TX_{n}DAY_WINDOW"] = count.values
        rows[f"CUSTOMER_ID_AVG_AMOUNT_{n}DAY_WINDOW"] = (window.sum() / count).values
    return rows


def of_terminal(rows, delay=7):
    rows = rows.sort_values("TX_DATETIME")
    frauds = rows.set_index("TX_DATETIME")["TX_FRAUD"]
    late = frauds.rolling(f"{delay}D")
    for n in DAYS:
        whole = frauds.rolling(f"{delay + n}D")
        count = (whole.count() - late.count()).values
        rows[f"TERMINAL_ID_NB_TX_{n}DAY_WINDOW"] = count
        rows[f"TERMINAL_ID_RISK_{n}DAY_WINDOW"] = (whole.sum() - late.sum()).values / count
    return rows.fillna(0)


rows = pd.read_csv(source, usecols=["TRANSACTION_ID", "TX_DATETIME", "CUSTOMER_ID", "TERMINAL_ID", "TX_AMOUNT", "TX_FRAUD"], parse_dates=["TX_DATETIME"])
rows["TX_DURING_WEEKEND"] = (rows["TX_DATETIME"].dt.weekday >= 5).astype(int)
rows["TX_DURING_NIGHT"] = (rows["TX_DATETIME"].dt.hour <= 6).astype(int)
for key, features in (("CUSTOMER_ID", of_customer), ("TERMINAL_ID", of_terminal)):
    rows = pd.concat(features(group) for _, group in rows.groupby(key))
rows.drop(columns=["TX_DATETIME", "CUSTOMER_ID", "TERMINAL_ID", "TX_AMOUNT", "TX_FRAUD"]).to_csv(target, index=False)
