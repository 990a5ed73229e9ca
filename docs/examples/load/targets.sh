#!/usr/bin/env bash
# Prints one question for each of 10,000 users, with a device and a card, of `weir demo`, as targets of Vegeta.
set -euo pipefail

url=${1:-http://localhost:8080}/v1/query
for n in $(seq -f '%06g' 1 10000); do
  body=$(printf '{"service":"payment_risk","entities":[{"user_id":"u%s","device_id":"d%s","card_id":"c%s"}]}' "$n" "$n" "$n" | base64 --wrap=0)
  printf '{"method":"POST","url":"%s","body":"%s","header":{"Content-Type":["application/json"]}}\n' "$url" "$body"
done
