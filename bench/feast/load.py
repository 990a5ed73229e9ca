"""Registers the features, and writes those of each entity to the online store. The argument is the number of users;
there are as many cards, and twice as many devices. The values are made up."""

import sys

import numpy
import pandas
from feast import FeatureStore

from features import AMOUNTS, COUNTS, entities, views

ROWS = 5_000  # written at a time

users = int(sys.argv[1])
store = FeatureStore(".")
store.apply([*entities, *views])
random = numpy.random.default_rng(1)
for name, n in {"user": users, "device": 2 * users, "card": users}.items():
    for start in range(0, n, ROWS):
        rows = min(ROWS, n - start)
        columns = {name + "_id": [f"{name[0]}{i:06d}" for i in range(start, start + rows)]}
        columns |= {count: random.integers(1, 100, rows) for count in COUNTS[name]}
        columns |= {amount: random.integers(1, 100_000, rows) / 100 for amount in AMOUNTS[name]}
        columns["event_timestamp"] = pandas.Timestamp.now("UTC")
        store.write_to_online_store(name + "_stats", pandas.DataFrame(columns))
