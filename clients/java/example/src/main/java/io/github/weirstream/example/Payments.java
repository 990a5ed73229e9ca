package io.github.weirstream.example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.github.weirstream.client.Answer;
import io.github.weirstream.client.Feature;
import io.github.weirstream.client.Question;
import io.github.weirstream.client.Retries;
import io.github.weirstream.client.WeirClient;
import io.github.weirstream.client.WeirException;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.ToDoubleFunction;
import org.jeasy.rules.api.Facts;
import org.jeasy.rules.api.Rules;
import org.jeasy.rules.api.RulesEngine;
import org.jeasy.rules.core.DefaultRulesEngine;
import org.jeasy.rules.core.RuleBuilder;

/**
 * Decides about payments with Easy Rules over features from Weir. It reads payments from standard input, each in the form
 * of its event on the bus, and writes a decision for each as a line of JSON.
 */
public final class Payments {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final List<String> FEATURES =
      List.of("device_payers_30d", "user_tx_10m", "user_amount_1d", "user_device_tx_30d", "user_usual_amount_30d");

  /** The decisions, the least severe first. */
  private enum Verdict {
    approve,
    review,
    decline
  }

  /** The decision about a payment, with the rules that led to it and the values they saw. */
  private static final class Decision {
    private Verdict verdict = Verdict.approve;
    private final TreeSet<String> reasons = new TreeSet<>();
    private final TreeMap<String, Double> features = new TreeMap<>();

    private void add(String reason, Verdict of) {
      reasons.add(reason);
      verdict = verdict.compareTo(of) >= 0 ? verdict : of;
    }
  }

  private final RulesEngine engine = new DefaultRulesEngine();
  private final Rules rules = new Rules();
  private final WeirClient weir;

  private Payments(String address, Duration timeout) {
    weir = WeirClient.builder(address).timeout(timeout).retries(Retries.DEFAULT).build();
    rule("shared_device", Verdict.decline, facts -> feature(facts, "device_payers_30d") - 3);
    rule("card_testing", Verdict.decline, facts -> feature(facts, "user_tx_10m") - 3);
    rule("much_in_a_day", Verdict.review, facts -> feature(facts, "user_amount_1d") - 2000);
    rule(
        "unusual_amount",
        Verdict.review,
        facts -> {
          double usual = feature(facts, "user_usual_amount_30d");
          return usual > 0 ? facts.<Double>get("amount") - 5 * usual : Double.NaN;
        });
    rule(
        "new_device",
        Verdict.review,
        facts -> feature(facts, "user_device_tx_30d") == 1 ? facts.<Double>get("amount") - 300 : Double.NaN);
  }

  /** Adds a rule that holds if its measure is above 0. It does not hold if the measure is unknown. */
  private void rule(String name, Verdict verdict, ToDoubleFunction<Facts> measure) {
    rules.register(
        new RuleBuilder()
            .name(name)
            .when(facts -> measure.applyAsDouble(facts) > 0)
            .then(facts -> facts.<Decision>get("decision").add(name, verdict))
            .build());
  }

  /** Returns NaN for an unknown feature: no comparison with it holds. */
  private static double feature(Facts facts, String name) {
    return facts.<Decision>get("decision").features.getOrDefault(name, Double.NaN);
  }

  private Decision decide(JsonNode payment) {
    // A missing amount is not 0, which would be approved: no comparison with NaN holds.
    double amount = payment.path("amount").asDouble(Double.NaN);
    Decision decision = new Decision();
    Answer answer;
    try {
      answer =
          weir.query(
              Question.service("payment_risk")
                  // As they are: Weir refuses a missing one, but not an empty text.
                  .entity(Map.of("user_id", payment.path("user_id"), "device_id", payment.path("device_id")))
                  .pending("transaction", payment));
    } catch (WeirException e) {
      System.err.println("payment " + payment.path("event_id").asText() + " is decided about without features: " + e.getMessage());
      // Fail open for small amounts.
      decision.add("no_features", amount <= 50 ? Verdict.approve : Verdict.review);
      return decision;
    }
    for (String name : FEATURES) {
      // Somebody may have removed it from the service.
      Feature feature = answer.results().get(0).features().get(name);
      if (feature != null && feature.isKnown() && feature.value().isNumber()) {
        decision.features.put(name, feature.value().doubleValue());
      }
    }
    if (decision.features.size() < FEATURES.size()) {
      // A rule without its features might have held: fail closed.
      decision.add("unknown_feature", Verdict.review);
    }
    Facts facts = new Facts();
    facts.put("amount", amount);
    facts.put("decision", decision);
    engine.fire(rules, facts);
    return decision;
  }

  /** The arguments are the address of Weir and the timeout for a payment's features, in ms. */
  public static void main(String[] args) throws IOException {
    Payments payments = new Payments(args[0], Duration.ofMillis(Long.parseLong(args[1])));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      JsonNode payment = JSON.readTree(line);
      Decision d = payments.decide(payment);
      System.out.println(
          JSON.createObjectNode()
              .put("payment", payment.path("event_id").asText())
              .put("decision", d.verdict.name())
              .<ObjectNode>set("reasons", JSON.valueToTree(d.reasons))
              .set("features", JSON.valueToTree(d.features)));
    }
  }
}
