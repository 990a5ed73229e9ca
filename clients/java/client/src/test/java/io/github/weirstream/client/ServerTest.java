package io.github.weirstream.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Tests against a running `weir demo`, from the binary that WEIR_BINARY names. */
@EnabledIfEnvironmentVariable(named = "WEIR_BINARY", matches = ".+")
class ServerTest {
  private static final Map<String, String> KEYS =
      Map.of("user_id", "u000001", "device_id", "d000001", "card_id", "c000001");
  private static Process demo;
  private static WeirClient weir;

  @BeforeAll
  static void start() throws IOException {
    String binary = System.getenv("WEIR_BINARY");
    demo =
        new ProcessBuilder(binary, "demo", "--events", "2000", "--days", "0", "--rate", "0", "--listen", "127.0.0.1:0")
            .redirectErrorStream(true)
            .start();
    BufferedReader out = new BufferedReader(new InputStreamReader(demo.getInputStream(), StandardCharsets.UTF_8));
    StringBuilder said = new StringBuilder();
    String address = null;
    for (String line = out.readLine(); line != null; line = out.readLine()) {
      said.append(line).append('\n');
      Matcher api = Pattern.compile("Open (http://\\S+)").matcher(line);
      if (api.find()) {
        address = api.group(1);
      }
      if (line.startsWith("2000 events,")) {
        weir = WeirClient.builder(address).timeout(Duration.ofSeconds(20)).build();
        return;
      }
    }
    throw new IOException("weir demo ended: " + said);
  }

  @AfterAll
  static void stop() throws InterruptedException {
    demo.destroy();
    demo.waitFor();
  }

  @Test
  void services() {
    Answer answer = weir.query(Question.service("payment_risk").entity(KEYS).entity(Map.of(
        "user_id", "nobody", "device_id", "d000001", "card_id", "c000001")));
    Feature met = answer.results().get(0).feature("user_tx_lifetime");
    assertTrue(met.isKnown() && met.exact() && met.value().intValue() > 0, met.toString());
    assertEquals(Status.NOT_FOUND, answer.results().get(1).feature("user_tx_lifetime").status());
  }

  @Test
  void pendingEvents() {
    Map<String, Object> payment =
        Map.of("type", "transaction", "event_id", "p1", "timestamp", System.currentTimeMillis(),
            "user_id", "newcomer", "device_id", "d000001", "amount", "12.50");
    Question question = Question.features("user_amount_1d").entity(Map.of("user_id", "newcomer"));
    assertEquals(0, weir.query(question).results().get(0).feature("user_amount_1d").value().doubleValue());
    Feature counted = weir.query(question.pending("transaction", payment)).results().get(0).feature("user_amount_1d");
    assertEquals(12.5, counted.value().doubleValue());
  }

  @Test
  void partitionsOfWhichNothingWasApplied() {
    Answer answer =
        weir.query(
            Question.features("user_tx_1h").entity(KEYS).waitFor("transactions", 1_000_000, 0, Duration.ofMillis(1)));
    assertTrue(!answer.applied() && answer.nothingApplied(), answer.toString());
  }

  @Test
  void refusals() {
    WeirException.Refused e =
        assertThrows(WeirException.Refused.class, () -> weir.feature("user_tx_lifetimes", Map.of("user_id", "u")));
    assertEquals(List.of("unknown_feature", "user_tx_lifetime"), List.of(e.code(), e.nearest()));
  }

  @Test
  void manyAtOnce() {
    List<CompletableFuture<Answer>> answers =
        IntStream.range(0, 200)
            .mapToObj(i -> Question.features("user_tx_lifetime").entity(Map.of("user_id", "u" + i)))
            .map(weir::queryAsync)
            .toList();
    answers.forEach(answer -> assertEquals(1, answer.join().results().size()));
  }

  @Test
  void members() {
    Feature feature =
        weir.query(Question.features("card_merchants_7d").entity(KEYS).members(List.of("m0", "m1")))
            .results().get(0).feature("card_merchants_7d");
    assertEquals(List.of("m0", "m1"), feature.members().stream().map(m -> m.member().textValue()).toList());
    assertTrue(feature.isKnown() && feature.members().get(1).isKnown(), feature.toString());
  }
}
