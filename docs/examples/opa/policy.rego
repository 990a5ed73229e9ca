# Decides about a payment: approve, review or decline, with the rules that led to it and
# the values they saw. The input is the payment in the form of its event on the bus.
package payments

weir_url := object.get(opa.runtime(), ["env", "WEIR_URL"], "http://localhost:8080")

# The timeout for the features; after it the decision is made without them.
weir_timeout := object.get(opa.runtime(), ["env", "WEIR_TIMEOUT"], "100ms")

# Without features a payment passes up to this amount.
unanswered_limit := 50

# The features that the rules use. A feature missing from the answer does not count as 0.
needed := {
	"device_payers_30d",
	"user_amount_1d",
	"user_device_tx_30d",
	"user_tx_10m",
	"user_usual_amount_30d",
}

# One question for all rules, with the payment as a pending event. A key that the payment
# lacks is null, and so are its features. Errors have the status code 0, so that a rule
# decides what they mean.
answer := http.send({
	"method": "POST",
	"url": sprintf("%s/v1/query", [weir_url]),
	"body": {
		"service": "payment_risk",
		"entities": [{key: object.get(input, key, null) | some key in ["user_id", "device_id"]}],
		"pending": {"stream": "transaction", "event": input},
	},
	"timeout": weir_timeout,
	"raise_error": false,
})

features := answer.body.results[0].features if answer.status_code == 200

# The known values. Values do not count if they are OUTSIDE_MAX_AGE, INCOMPLETE (the feature
# is younger than its window), or of a status that this policy does not know.
value[name] := feature.value if {
	some name, feature in features
	feature.status in {"PRESENT", "NULL_VALUE", "NOT_FOUND"}
	is_number(feature.value)
}

hits contains {"rule": "shared_device", "decision": "decline"} if value.device_payers_30d > 3

hits contains {"rule": "card_testing", "decision": "decline"} if value.user_tx_10m > 3

hits contains {"rule": "much_in_a_day", "decision": "review"} if value.user_amount_1d > 2000

hits contains {"rule": "unusual_amount", "decision": "review"} if {
	value.user_usual_amount_30d > 0
	amount > 5 * value.user_usual_amount_30d
}

hits contains {"rule": "new_device", "decision": "review"} if {
	value.user_device_tx_30d == 1
	amount > 300
}

# Fail closed: a rule without its features might have hit.
hits contains {"rule": "unknown_feature", "decision": "review"} if {
	features
	some name in needed
	not name in object.keys(value)
}

# Without an answer, fail open for small amounts and closed for others.
hits contains {"rule": "no_features", "decision": "approve"} if {
	not features
	small
}

hits contains {"rule": "no_features", "decision": "review"} if {
	not features
	not small
}

# A rule of its own: `not amount <= unanswered_limit` is undefined, and not true, without an amount.
small if amount <= unanswered_limit

# The amount is a number, or a text that holds one, as Weir reads a decimal. It is undefined for all
# else: Rego compares values of any types, and a null is less than any number, a text greater.
amount := input.amount if is_number(input.amount)

amount := to_number(input.amount) if is_string(input.amount)

# The most severe decision holds.
default decision := "approve"

decision := "decline" if {
	some hit in hits
	hit.decision == "decline"
} else := "review" if {
	some hit in hits
	hit.decision == "review"
}

decide := {
	"payment": input.event_id,
	"decision": decision,
	"reasons": sort([hit.rule | some hit in hits]),
	"features": {name: value[name] | some name in needed},
}
