package io.github.weirstream.client;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/** A client of one server, or of several behind one address; threads may share it. */
public final class WeirClient {
  private final URI query;
  private final Supplier<String> token;
  private final Duration timeout;
  private final Retries retries;
  private final HttpClient http;

  private WeirClient(Builder b) {
    query = URI.create(b.address.replaceAll("/+$", "") + "/v1/query");
    token = b.token;
    timeout = b.timeout;
    retries = b.retries;
    http = b.http != null ? b.http : HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
  }

  /** Configures a client of the server at an address such as http://localhost:8080. It connects with the first question. */
  public static Builder builder(String address) {
    return new Builder(address);
  }

  /** The settings of a client. */
  public static final class Builder {
    private final String address;
    private Supplier<String> token = () -> null;
    private Duration timeout = Duration.ofSeconds(2);
    private Retries retries = Retries.DEFAULT;
    private HttpClient http;

    private Builder(String address) {
      this.address = address;
    }

    /** A bearer token for each request. */
    public Builder token(String token) {
      return token(() -> token);
    }

    /** Supplies the bearer token of each request, for tokens that expire. */
    public Builder token(Supplier<String> token) {
      this.token = token;
      return this;
    }

    /** The timeout of a question, including retries; 2 s by default. */
    public Builder timeout(Duration timeout) {
      this.timeout = timeout;
      return this;
    }

    /** When a question is retried. */
    public Builder retries(Retries retries) {
      this.retries = retries;
      return this;
    }

    /** Sends requests with an HTTP client, such as one with certificates. */
    public Builder http(HttpClient http) {
      this.http = http;
      return this;
    }

    /** Returns the client. */
    public WeirClient build() {
      return new WeirClient(this);
    }
  }

  /**
   * Asks a question, and waits for its answer.
   *
   * @throws WeirException.Refused if the server refused the question or failed to answer it
   * @throws WeirException if no answer came in time
   */
  public Answer query(Question question) {
    CompletableFuture<Answer> answer = queryAsync(question);
    try {
      return answer.get();
    } catch (InterruptedException e) {
      answer.cancel(true);
      Thread.currentThread().interrupt();
      throw new WeirException("interrupted", e);
    } catch (ExecutionException e) {
      // The suppressed exception adds the caller's stack trace.
      if (e.getCause() instanceof WeirException failure) {
        failure.addSuppressed(new RuntimeException("asked here"));
        throw failure;
      }
      throw new WeirException(e.getCause().toString(), e.getCause());
    }
  }

  /** Asks for one feature of one entity, as of now. */
  public Feature feature(String name, Map<String, ?> entity) {
    return query(Question.features(name).entity(entity)).results().get(0).feature(name);
  }

  /** Asks a question; the future fails with a {@link WeirException}. Cancelling it ends the request, and retries. */
  public CompletableFuture<Answer> queryAsync(Question question) {
    Asked asked =
        new Asked(
            Wire.encode(question), question.size(), System.nanoTime() + timeout.toNanos(), new CompletableFuture<>());
    asked.go(() -> attempt(asked, 1));
    return asked.answer;
  }

  /** A question until it is answered. */
  private record Asked(byte[] body, int entities, long deadline, CompletableFuture<Answer> answer) {
    /** Takes a step towards the answer; an exception means that there will be none. */
    void go(Runnable step) {
      try {
        step.run();
      } catch (WeirException e) {
        answer.completeExceptionally(e);
      } catch (Throwable e) {
        answer.completeExceptionally(new WeirException("no answer: " + e, e));
      }
    }
  }

  /** Makes the nth attempt, unless the caller no longer waits. */
  private void attempt(Asked asked, int n) {
    if (asked.answer.isDone()) {
      return;
    }
    HttpRequest.Builder request =
        HttpRequest.newBuilder(query)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofByteArray(asked.body));
    authorize(request);
    long left = Math.max(asked.deadline - System.nanoTime(), 1); // a supplier of tokens takes its time, too
    request.timeout(Duration.ofNanos(left));
    CompletableFuture<HttpResponse<byte[]>> sent =
        http.sendAsync(request.build(), HttpResponse.BodyHandlers.ofByteArray());
    asked.answer.whenComplete((answer, failure) -> sent.cancel(true)); // if the caller has cancelled it
    // The request's timeout ends with the headers; this one includes the body.
    sent.copy()
        .orTimeout(left, TimeUnit.NANOSECONDS)
        .whenComplete(
            (response, failure) -> {
              sent.cancel(true); // closes the connection if it timed out
              asked.go(() -> conclude(asked, n, response, failure));
            });
  }

  /** Adds the token; its failure is a reason for no answer, as any other. */
  private void authorize(HttpRequest.Builder request) {
    String bearer;
    try {
      bearer = token.get();
    } catch (RuntimeException e) {
      throw new WeirException("no token: " + e, e);
    }
    if (bearer == null) {
      return;
    }
    try {
      request.header("Authorization", "Bearer " + bearer.strip()); // a file of a token ends with a line end
    } catch (IllegalArgumentException e) { // whose message has the token
      throw new WeirException("the token has characters that no header may have", null);
    }
  }

  /** Answers the question, or asks again later. An exception means neither. */
  private void conclude(Asked asked, int n, HttpResponse<byte[]> response, Throwable failure) {
    Duration after = Duration.ZERO;
    WeirException error;
    if (failure != null) {
      Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
      error = new WeirException("no answer: " + cause, cause);
      // A timeout is not retried: the next attempt would take as long.
      if (!(cause instanceof IOException) || cause instanceof HttpTimeoutException) {
        throw error;
      }
    } else if (response.statusCode() == 200) {
      asked.answer.complete(Wire.answer(response.body(), asked.entities));
      return;
    } else {
      error = Wire.refusal(response.statusCode(), response.body());
      String seconds = response.headers().firstValue("Retry-After").orElse("");
      if (response.statusCode() != 503 || !seconds.matches("[0-9]{1,9}")) {
        throw error;
      }
      after = Duration.ofSeconds(Long.parseLong(seconds));
    }
    long wait = retries.waitNanos(n, after, asked.deadline - System.nanoTime());
    if (wait < 0) {
      throw error;
    }
    CompletableFuture.delayedExecutor(wait, TimeUnit.NANOSECONDS).execute(() -> asked.go(() -> attempt(asked, n + 1)));
  }
}
