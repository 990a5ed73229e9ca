package io.github.weirstream.client;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * How a question is asked again after a connection failed, or after a 503 that says when to.
 *
 * @param attempts how often a question is asked at the most; 1 never asks again
 * @param first the longest wait after the first attempt; the next ones double
 * @param most the longest wait of all. A 503 that says longer is not waited for.
 */
public record Retries(int attempts, Duration first, Duration most) {
  /** Three attempts, the second after up to 10 ms. */
  public static final Retries DEFAULT = new Retries(3, Duration.ofMillis(10), Duration.ofSeconds(2));

  /** One attempt. */
  public static final Retries NEVER = new Retries(1, Duration.ZERO, Duration.ZERO);

  /**
   * Nanoseconds to wait after the nth attempt, no less than after; negative if no other would help. Chance takes up to all
   * of the rest away, so that many clients do not come back at once.
   */
  long waitNanos(int n, Duration after, long left) {
    if (n >= attempts || after.compareTo(most) > 0) {
      return -1;
    }
    double backoff = Math.min(first.toNanos() * Math.pow(2, n - 1), most.toNanos());
    long wait = after.toNanos() + (long) (backoff * ThreadLocalRandom.current().nextDouble());
    return wait < left ? wait : -1;
  }
}
