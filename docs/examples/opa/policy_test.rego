package payments_test

import data.payments

payment := {
	"type": "transaction", "event_id": "p1", "timestamp": 1772446200000,
	"user_id": "ann", "device_id": "phone-1", "amount": 35,
}

# answering is Weir's response with the features of an ordinary payment, some replaced.
answering(others) := {"status_code": 200, "body": {"results": [{"features": object.union(
	{
		"device_payers_30d": {"value": 1, "status": "PRESENT"},
		"user_tx_10m": {"value": 1, "status": "PRESENT"},
		"user_amount_1d": {"value": 35, "status": "PRESENT"},
		"user_device_tx_30d": {"value": 4, "status": "PRESENT"},
		"user_usual_amount_30d": {"value": 40, "status": "PRESENT"},
	},
	others,
)}]}}

decide(event, answer) := object.remove(decision, ["payment", "features"]) if {
	decision := payments.decide with input as event with http.send as answer
}

costing(amount) := object.union(payment, {"amount": amount})

present(value) := {"value": value, "status": "PRESENT"}

test_ordinary if {
	decide(payment, answering({})) == {"decision": "approve", "reasons": []}
}

test_values_are_told if {
	decision := payments.decide with input as payment with http.send as answering({})
	decision.features == {
		"device_payers_30d": 1, "user_tx_10m": 1, "user_amount_1d": 35,
		"user_device_tx_30d": 4, "user_usual_amount_30d": 40,
	}
}

test_each_rule[rule] if {
	some rule, c in {
		"shared_device": {"with": {"device_payers_30d": present(4)}, "amount": 35, "is": "decline"},
		"card_testing": {"with": {"user_tx_10m": present(4)}, "amount": 35, "is": "decline"},
		"much_in_a_day": {"with": {"user_amount_1d": present(2000.01)}, "amount": 35, "is": "review"},
		"unusual_amount": {"with": {}, "amount": 200.01, "is": "review"},
		"new_device": {
			"with": {"user_device_tx_30d": present(1), "user_usual_amount_30d": present(200)},
			"amount": 300.01, "is": "review",
		},
	}
	decide(costing(c.amount), answering(c.with)) == {"decision": c.is, "reasons": [rule]}
}

test_no_rule_at_its_limit if {
	at_limits := answering({
		"device_payers_30d": present(3),
		"user_tx_10m": present(3),
		"user_amount_1d": present(2000),
		"user_device_tx_30d": present(1),
		"user_usual_amount_30d": present(60),
	})
	decide(costing(300), at_limits) == {"decision": "approve", "reasons": []}
}

test_amount_may_be_a_text if {
	decide(costing("35.00"), answering({})) == {"decision": "approve", "reasons": []}
	decide(costing("200.01"), answering({})) == {"decision": "review", "reasons": ["unusual_amount"]}
}

test_most_severe_holds if {
	both := answering({"user_amount_1d": present(2001), "user_tx_10m": present(4)})
	decide(payment, both) == {"decision": "decline", "reasons": ["card_testing", "much_in_a_day"]}
}

test_first_payment_is_not_unusual if {
	first := answering({"user_usual_amount_30d": {"value": 0, "status": "NOT_FOUND"}})
	decide(payment, first) == {"decision": "approve", "reasons": []}
}

test_fails_closed_where_a_feature_is_not_known[about] if {
	some about, feature in {
		"too old": {"value": null, "status": "OUTSIDE_MAX_AGE", "oldest": 1772446200000},
		"younger than its window": {"value": 1, "status": "INCOMPLETE", "complete_since": 1772446200000},
		"a status of tomorrow": {"value": 1, "status": "SOMETIMES"},
		"no number": {"value": null, "status": "NULL_VALUE"},
	}
	answer := answering({"user_tx_10m": feature})
	decide(payment, answer) == {"decision": "review", "reasons": ["unknown_feature"]}
}

test_fails_closed_where_a_feature_is_not_in_the_service if {
	answer := json.remove(answering({}), ["body/results/0/features/user_tx_10m"])
	decide(payment, answer) == {"decision": "review", "reasons": ["unknown_feature"]}
}

unanswered[about] := answer if {
	some about, answer in {
		"timeout": {"status_code": 0, "error": {"message": "request timed out"}},
		"overloaded": {"status_code": 503, "body": {"error": {"code": "overloaded"}}},
		"refused": {"status_code": 400, "body": {"error": {"code": "bad_event"}}},
		"not Weir": {"status_code": 200, "raw_body": "<html>"},
		"no result": {"status_code": 200, "body": {"results": []}},
	}
}

test_fails_open_for_small_amounts[about] if {
	some about, answer in unanswered
	decide(costing(50), answer) == {"decision": "approve", "reasons": ["no_features"]}
	decide(costing("50.00"), answer) == {"decision": "approve", "reasons": ["no_features"]}
}

test_fails_closed_for_others[about] if {
	some about, answer in unanswered
	decide(costing(50.01), answer) == {"decision": "review", "reasons": ["no_features"]}
}

test_fails_closed_without_an_amount[about] if {
	some about, answer in unanswered
	decide(object.remove(payment, ["amount"]), answer) == {"decision": "review", "reasons": ["no_features"]}
	decide(costing(null), answer) == {"decision": "review", "reasons": ["no_features"]}
	decide(costing("much"), answer) == {"decision": "review", "reasons": ["no_features"]}
}

test_asks_with_the_payment_counted_in if {
	payments.answer == {"asked": {
		"service": "payment_risk",
		"entities": [{"user_id": "ann", "device_id": "phone-1"}],
		"pending": {"stream": "transaction", "event": payment},
	}} with input as payment with http.send as echo
}

echo(request) := {"asked": request.body} if {
	request.timeout
	request.raise_error == false
}
