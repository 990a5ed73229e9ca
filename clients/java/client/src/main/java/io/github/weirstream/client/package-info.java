/**
 * Asks a Weir server for features, as a rule engine does.
 *
 * <pre>{@code
 * WeirClient weir = WeirClient.builder("http://localhost:8080").timeout(Duration.ofMillis(100)).build();
 * Answer answer = weir.query(Question.service("payment_risk")
 *     .entity(Map.of("user_id", "u000001", "device_id", "d000001", "card_id", "c000001"))
 *     .pending("transaction", payment));
 * Feature spent = answer.results().get(0).feature("user_amount_1d");
 * if (spent.isKnown() && spent.value().asDouble() > 10_000) { … }
 * }</pre>
 */
package io.github.weirstream.client;
