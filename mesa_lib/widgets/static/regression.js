// One input, one target: a line through the origin, its loss on a context, and a gradient step (half-MSE everywhere).

/** L(w) = 1/(2N) sum_i (w x_i - y_i)^2. */
export function contextLoss(weight, x, y) {
  return x.reduce((sum, xi, i) => sum + (weight * xi - y[i]) ** 2, 0) / (2 * x.length);
}

/** dL/dw = 1/N sum_i (w x_i - y_i) x_i. */
export function lossGradient(weight, x, y) {
  return x.reduce((sum, xi, i) => sum + (weight * xi - y[i]) * xi, 0) / x.length;
}

/** The targets y_i - dw x_i that do to the loss what the step dw does to the weight. */
export function movedTargets(change, x, y) {
  return y.map((yi, i) => yi - change * x[i]);
}

/** The weight after some gradient steps of size eta from `weight`. */
export function gradientDescent(weight, eta, steps, x, y) {
  let now = weight;
  for (let step = 0; step < steps; step += 1) now -= eta * lossGradient(now, x, y);
  return now;
}
