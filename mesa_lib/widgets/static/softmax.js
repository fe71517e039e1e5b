// Softmax attention as a step: heads at +beta and -beta, one input and one target, keys x, values y.

/** exp(s_i) / sum_j exp(s_j), with `sinks` further scores of zero in the sum. */
export function softmax(scores, sinks = 0) {
  const top = Math.max(...scores, sinks > 0 ? 0 : -Infinity);
  const powers = scores.map((score) => Math.exp(score - top));
  const total = powers.reduce((sum, value) => sum + value, 0) + (sinks > 0 ? sinks * Math.exp(-top) : 0);
  return powers.map((value) => value / total);
}

/** A head's mean of the targets, weighted by softmax(beta x_i x_q): a kernel smoother. */
export function smoother(beta, x, y, query, sinks = 0) {
  return softmax(x.map((key) => beta * key * query), sinks).reduce((sum, weight, i) => sum + weight * y[i], 0);
}

/**
 * The prediction of a layer whose output is scaled so that its slope at beta -> 0 is that of a step of size eta:
 * heads "one" (beta alone), "one-sided" (beta and 0) or "two" (beta and -beta), with `sinks` empty tokens.
 */
export function attentionStep({ heads, beta, eta, sinks = 0 }, x, y, query) {
  const scale = (eta * (x.length + sinks)) / x.length / beta;
  const up = smoother(beta, x, y, query, sinks);
  if (heads === "one") return scale * up;
  if (heads === "one-sided") return scale * (up - smoother(0, x, y, query, sinks));
  return (scale / 2) * (up - smoother(-beta, x, y, query, sinks));
}

/** The step's slope (eta/N) sum_i y_i (x_i - share * mean of x): share 0 is gradient descent, 1 the centred step. */
export function stepSlope(eta, x, y, share = 0) {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  return (eta / x.length) * x.reduce((sum, value, i) => sum + y[i] * (value - share * mean), 0);
}
