package io.github.weirstream.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * When a question is retried after a failed connection, or after a 503 with Retry-After.
 *
 * @param attempts the maximum number of attempts; 1 disables retries
 * @param first the longest wait after the first attempt; it doubles after each further one
 * @param most the longest wait of all. A 503 whose Retry-After is longer is not retried.
 */
public record Retries(int attempts, Duration first, Duration most) {
  /** Three attempts, the second after up to 10 ms. */
  public static final Retries DEFAULT = new Retries(3, Duration.ofMillis(10), Duration.ofSeconds(2));

  /** One attempt. */
  public static final Retries NEVER = new Retries(1, Duration.ZERO, Duration.ZERO);

  /**
   * Returns the nanoseconds to wait after the nth attempt, at least after; negative if a retry would not help. The rest, up
   * to half of after, is random, so that many clients do not retry at once.
   */
  long waitNanos(int n, Duration after, long left) {
    if (n >= attempts || after.compareTo(most) > 0) {
      return -1;
    }
    double backoff = Math.min(first.toNanos() * Math.pow(2, n - 1), most.toNanos());
    double spread = Math.max(backoff, after.toNanos() / 2.0);
    long wait = after.toNanos() + (long) (spread * ThreadLocalRandom.current().nextDouble());
    return wait < left ? wait : -1;
  }
}
