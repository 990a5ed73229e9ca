package io.github.weirstream.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.TextNode;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class WeirClientTest {
  private static final String FEATURE = "{'value':3,'status':'PRESENT','from':0,'to':1000,'exact':true}";
  private static final Question QUESTION = Question.features("f").entity(Map.of("user_id", "u1"));

  private record Reply(int status, String retryAfter, String body) {}

  /** The server's replies in order; the last one is repeated. A null closes the connection. */
  private final List<Reply> replies = Collections.synchronizedList(new ArrayList<>());

  private final List<String> bodies = Collections.synchronizedList(new ArrayList<>());
  private final List<String> tokens = Collections.synchronizedList(new ArrayList<>());
  private final CountDownLatch ended = new CountDownLatch(1);
  private HttpServer server;
  private String address;

  @BeforeEach
  void start() throws IOException {
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext(
        "/v1/query",
        exchange -> {
          bodies.add(new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
          tokens.add(String.valueOf(exchange.getRequestHeaders().getFirst("Authorization")));
          Reply reply = replies.get(Math.min(bodies.size(), replies.size()) - 1);
          if (reply == null) {
            exchange.close();
            return;
          }
          if (reply.status == 0) { // never replies
            try {
              ended.await();
            } catch (InterruptedException e) {
              Thread.currentThread().interrupt();
            }
          }
          if (reply.retryAfter != null) {
            exchange.getResponseHeaders().set("Retry-After", reply.retryAfter);
          }
          byte[] body = reply.body.replace('\'', '"').getBytes(StandardCharsets.UTF_8);
          exchange.sendResponseHeaders(reply.status == 0 ? 200 : reply.status, body.length);
          exchange.getResponseBody().write(body);
          exchange.close();
        });
    server.start();
    address = "http://127.0.0.1:" + server.getAddress().getPort();
  }

  @AfterEach
  void stop() {
    ended.countDown();
    server.stop(0);
  }

  private WeirClient.Builder client() {
    return WeirClient.builder(address + "/")
        .timeout(Duration.ofSeconds(20))
        .retries(new Retries(3, Duration.ZERO, Duration.ofSeconds(2)));
  }

  private static String answer(String features, String more) {
    return "{'at':1000,'results':[{'entity':{'user_id':'u1'},'features':{" + features + "}}]" + more + "}";
  }

  private Answer ask(String body, Question question) {
    replies.add(new Reply(200, null, body));
    return client().build().query(question);
  }

  @Test
  void questionsAreWrittenAsTheServerTakesThem() throws IOException {
    Question all =
        Question.service("s")
            .entity(Map.of("amount", new BigDecimal("9007199254740993.10")))
            .at(Instant.ofEpochMilli(5))
            .members(Map.of("f", List.of(1, "two")))
            .pending("transaction", Map.of("id", "a\"\n"))
            .event("login", Map.of("ok", true))
            .waitFor("t", 3, 9, Duration.ofMillis(250));
    ask(answer("'f':" + FEATURE, ""), all);
    ask(answer("'f':" + FEATURE, ""), Question.features("f").entity(Map.of()).members(List.of("a")).waitFor("t", 0, 1));
    assertEquals(
        new ObjectMapper()
            .readTree(
                "{\"service\":\"s\",\"entities\":[{\"amount\":9007199254740993.10}],\"at\":5,\"members\":{\"f\":[1,\"two\"]},"
                    + "\"pending\":[{\"stream\":\"transaction\",\"event\":{\"id\":\"a\\\"\\n\"}}],"
                    + "\"event\":{\"stream\":\"login\",\"event\":{\"ok\":true}},"
                    + "\"wait_for\":{\"topic\":\"t\",\"partition\":3,\"offset\":9,\"timeout_ms\":250}}"),
        new ObjectMapper().readTree(bodies.get(0)));
    assertTrue(bodies.get(0).contains("9007199254740993.10"), bodies.get(0));
    assertEquals(
        new ObjectMapper()
            .readTree(
                "{\"features\":[\"f\"],\"entities\":[{}],\"members\":[\"a\"],"
                    + "\"wait_for\":{\"topic\":\"t\",\"partition\":0,\"offset\":1}}"),
        new ObjectMapper().readTree(bodies.get(1)));
  }

  @Test
  void answersAreRead() {
    String features =
        "'f':{'value':0.10000000000000000001,'status':'INCOMPLETE','from':0,'to':1000,'exact':false,'complete_since':500,'complete_at':9000,'filled':0.25,"
            + "'relative_error':0.01,'uncertain':2,'capped':true,'a_later_field':1},"
            + "'past':{'value':2,'status':'LATER_EVENTS','from':0,'to':1,'exact':false,'later_events':true},"
            + "'lifetime':{'value':{'a':[1,null]},'status':'A_LATER_ONE','from':null,'to':1000,'exact':true},"
            + "'seen':{'members':[{'member':'m','value':true,'status':'PRESENT'},{'member':'n','value':null,'status':'PRESENT'}],'capped':true,'from':0,'to':1,'exact':true}";
    Answer answer =
        ask(
            answer(
                features,
                ",'waited':{'applied':true},'read_from':'replica','staleness_ms':1500,'table_lag_ms':200,"
                    + "'pending':[{'stream':'t','time':7,'deduplicated':true,'uncounted':true},{'stream':'t','time':7,'deduplicated':true,'met':2000}]"),
            QUESTION);
    Feature f = answer.results().get(0).feature("f");
    assertEquals(new BigDecimal("0.10000000000000000001"), f.value().decimalValue());
    assertEquals(Status.INCOMPLETE, f.status());
    assertFalse(f.isKnown());
    assertEquals(Instant.EPOCH, f.from());
    assertEquals(Instant.ofEpochMilli(1000), f.to());
    assertEquals(Instant.ofEpochMilli(500), f.completeSince());
    assertEquals(Instant.ofEpochMilli(9000), f.completeAt());
    assertEquals(0.25, f.filled());
    assertEquals(List.of(0.01, 2L, true, false), List.of(f.relativeError(), f.uncertain(), f.capped(), f.exact()));
    Feature past = answer.results().get(0).feature("past");
    assertEquals(Status.LATER_EVENTS, past.status());
    assertEquals(List.of(true, false, false), List.of(past.laterEvents(), past.isKnown(), f.laterEvents()));
    Feature lifetime = answer.results().get(0).feature("lifetime");
    assertEquals(1, lifetime.value().get("a").get(0).intValue());
    assertEquals(Status.UNKNOWN, lifetime.status());
    assertNull(lifetime.from());
    assertNull(lifetime.filled());
    assertNull(lifetime.completeAt());
    assertNull(answer.results().get(0).feature("seen").members().get(1).met());
    Feature.Member member = answer.results().get(0).feature("seen").members().get(0);
    assertEquals(List.of("m", true, Status.PRESENT), List.of(member.member().textValue(), member.met(), member.status()));
    assertTrue(answer.applied() && !answer.nothingApplied() && answer.replica());
    assertEquals(Duration.ofMillis(1500), answer.staleness());
    assertEquals(Duration.ofMillis(200), answer.tableLag());
    assertEquals(
        List.of(
            new Answer.PendingOutcome("t", Instant.ofEpochMilli(7), true, null, false, true),
            new Answer.PendingOutcome("t", Instant.ofEpochMilli(7), true, Instant.ofEpochSecond(2), false, false)),
        answer.pending());
    assertThrows(IllegalArgumentException.class, () -> answer.results().get(0).feature("g"));
  }

  @Test
  void answersSayWhatTheyLack() {
    Answer answer = ask(answer("'f':" + FEATURE, ",'waited':{'applied':false,'nothing_applied':true},'table_lag_ms':0"), QUESTION);
    assertEquals(List.of(false, true, Duration.ZERO), List.of(answer.applied(), answer.nothingApplied(), answer.tableLag()));
    replies.clear();
    bodies.clear();
    answer = ask(answer("'f':" + FEATURE, ""), QUESTION);
    assertEquals(List.of(false, false), List.of(answer.applied(), answer.nothingApplied()));
    assertNull(answer.tableLag());
  }

  @Test
  void rulesUseOnlyWhatIsKnown() {
    for (Status status : Status.values()) {
      boolean want = List.of(Status.PRESENT, Status.NULL_VALUE, Status.NOT_FOUND).contains(status);
      assertEquals(want, feature("'value':null,'status':'" + status + "'").isKnown(), status.name());
      assertEquals(want, new Feature.Member(TextNode.valueOf("m"), false, status).isKnown(), "a member that is " + status);
      assertFalse(new Feature.Member(TextNode.valueOf("m"), null, status).isKnown(), "a member without an answer");
    }
    String known = "{'member':'m','value':false,'status':'NOT_FOUND'}";
    assertTrue(feature("'members':[" + known + "]").isKnown());
    for (String other : List.of("null,'status':'PRESENT'", "true,'status':'INCOMPLETE'")) {
      assertFalse(feature("'members':[" + known + ",{'member':'n','value':" + other + "}]").isKnown(), other);
    }
  }

  private Feature feature(String fields) {
    replies.clear();
    bodies.clear();
    return ask(answer("'f':{" + fields + ",'from':0,'to':1,'exact':true}", ""), QUESTION).results().get(0).feature("f");
  }

  @Test
  void refusalsSayWhy() {
    replies.add(
        new Reply(404, null, "{'error':{'code':'unknown_feature','message':'no such feature','feature':'g','nearest':'f'}}"));
    WeirException.Refused e = assertThrows(WeirException.Refused.class, () -> client().build().query(QUESTION));
    assertEquals("no such feature (unknown_feature)", e.getMessage());
    assertEquals(List.of(404, "unknown_feature", "g", "f"), List.of(e.status(), e.code(), e.feature(), e.nearest()));
    assertNull(e.entity());
    assertEquals(1, bodies.size());
  }

  @Test
  void answersThatAreNotWeirsAreErrors() {
    for (String body : List.of("<html>", "[]", "null", "{'at':0}", "{'at':0,'results':[]}")) {
      replies.clear();
      bodies.clear();
      WeirException e = assertThrows(WeirException.class, () -> ask(body, QUESTION), body);
      assertFalse(e instanceof WeirException.Refused, body);
    }
    replies.clear();
    bodies.clear();
    replies.add(new Reply(502, null, "<html>"));
    WeirException.Refused e = assertThrows(WeirException.Refused.class, () -> client().build().query(QUESTION));
    assertEquals("the server answered 502, but not as Weir does", e.getMessage());
    assertEquals("", e.code());
  }

  @Test
  void failuresAreTriedAgain() {
    Reply later = new Reply(503, "0", "{'error':{'code':'overloaded','message':'later'}}");
    Reply good = new Reply(200, null, answer("'f':" + FEATURE, ""));
    replies.addAll(Arrays.asList(null, later, good));
    assertEquals(3, client().build().query(QUESTION).results().get(0).feature("f").value().intValue());
    assertEquals(3, bodies.size());
  }

  @Test
  void failuresThatNoOtherAttemptWouldHelpAreNotTriedAgain() {
    String failure = "{'error':{'code':'overloaded','message':'later'}}";
    Map<String, Reply> cases =
        Map.of(
            "no 503", new Reply(500, "0", failure),
            "longer than the longest wait", new Reply(503, "3", failure),
            "no number", new Reply(503, "soon", failure));
    cases.forEach(
        (name, reply) -> {
          replies.clear();
          bodies.clear();
          replies.add(reply);
          assertThrows(WeirException.Refused.class, () -> client().build().query(QUESTION), name);
          assertEquals(1, bodies.size(), name);
        });
    replies.clear();
    bodies.clear();
    replies.add(new Reply(503, "20", failure));
    WeirClient hurried = client().retries(new Retries(3, Duration.ZERO, Duration.ofSeconds(20))).build();
    assertThrows(WeirException.Refused.class, () -> hurried.query(QUESTION), "longer than there is time");
    bodies.clear();
    replies.set(0, new Reply(503, "0", failure));
    assertThrows(WeirException.Refused.class, () -> client().build().query(QUESTION), "three attempts");
    assertEquals(3, bodies.size());
    bodies.clear();
    assertThrows(WeirException.Refused.class, () -> client().retries(Retries.NEVER).build().query(QUESTION));
    assertEquals(1, bodies.size());
  }

  @Test
  void waitsAreSpread() {
    Map.of(Duration.ofSeconds(1), Duration.ofMillis(500), Duration.ZERO, Duration.ofMillis(10))
        .forEach(
            (after, spread) -> {
              long longest = 0;
              for (int i = 0; i < 1000; i++) {
                long wait = Retries.DEFAULT.waitNanos(1, after, Long.MAX_VALUE) - after.toNanos();
                assertTrue(wait >= 0 && wait <= spread.toNanos(), wait + " ns longer than " + after);
                longest = Math.max(longest, wait);
              }
              assertTrue(longest > spread.toNanos() / 2, "at most " + longest + " ns longer than " + after);
            });
  }

  @Test
  void timeRunsOut() {
    replies.add(new Reply(0, null, "late"));
    WeirException e =
        assertThrows(WeirException.class, () -> client().timeout(Duration.ofMillis(50)).build().query(QUESTION));
    assertTrue(e.getMessage().contains("imeout"), e.getMessage());
    assertTrue(bodies.size() <= 1, "it was asked again");
  }

  @Test
  void interruptedQuestionsEndTheirRequests() throws Exception {
    try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      WeirClient patient = WeirClient.builder("http://127.0.0.1:" + silent.getLocalPort()).timeout(Duration.ofHours(1)).build();
      CompletableFuture<WeirException> failure = new CompletableFuture<>();
      Thread asking = new Thread(() -> failure.complete(assertThrows(WeirException.class, () -> patient.query(QUESTION))));
      asking.start();
      try (Socket first = silent.accept()) {
        first.getInputStream().read();
      }
      try (Socket second = silent.accept()) {
        second.setSoTimeout(20_000);
        InputStream request = second.getInputStream();
        int next = request.read();
        asking.interrupt();
        assertEquals("interrupted", failure.get(20, TimeUnit.SECONDS).getMessage());
        while (next >= 0) {
          next = nextByte(request);
        }
      }
    }
  }

  /** Returns -1 at the end of a connection, also of one that was reset. A connection that stays open fails the test. */
  private static int nextByte(InputStream connection) throws IOException {
    try {
      return connection.read();
    } catch (SocketException e) {
      return -1;
    }
  }

  @Test
  void futuresFailWithTheSame() {
    replies.add(new Reply(404, null, "{'error':{'code':'unknown_feature','message':'no'}}"));
    ExecutionException e = assertThrows(ExecutionException.class, () -> client().build().queryAsync(QUESTION).get());
    assertInstanceOf(WeirException.Refused.class, e.getCause());
    replies.set(0, new Reply(200, null, "{'at':0,'results':[{'entity':{}}]}"));
    e = assertThrows(ExecutionException.class, () -> client().build().queryAsync(QUESTION).get());
    assertInstanceOf(WeirException.class, e.getCause());
    assertEquals("the answer cannot be read: a result lacks features", e.getCause().getMessage());
  }

  @Test
  void tokensAreSent() {
    Iterator<String> given = List.of("a", "b\n").iterator();
    replies.add(new Reply(200, null, answer("'f':" + FEATURE, "")));
    WeirClient client = client().token(given::next).build();
    client.query(QUESTION);
    assertEquals(3, client.feature("f", Map.of("user_id", "u1")).value().intValue());
    client().build().query(QUESTION);
    assertEquals(List.of("Bearer a", "Bearer b", "null"), tokens);
  }

  @Test
  void tokensThatCannotBeHadAreNoAnswer() {
    WeirClient without =
        client()
            .token(
                () -> {
                  throw new IllegalStateException("the issuer is away");
                })
            .build();
    WeirException e = assertThrows(WeirException.class, () -> without.query(QUESTION));
    assertEquals("no token: java.lang.IllegalStateException: the issuer is away", e.getMessage());
    assertInstanceOf(IllegalStateException.class, e.getCause());
    ExecutionException failed = assertThrows(ExecutionException.class, () -> without.queryAsync(QUESTION).get());
    assertInstanceOf(WeirException.class, failed.getCause());
    WeirClient broken = client().token("secret\nsecret").build();
    e = assertThrows(WeirException.class, () -> broken.query(QUESTION));
    assertEquals("the token has characters that no header may have", e.getMessage());
    assertNull(e.getCause());
    assertEquals(List.of(), bodies);
  }
}
