// What methods leave of the error along an eigenvector of A = S / N with eigenvalue lambda: the share rho, 1 at first.
// Every function takes a list of eigenvalues and returns one list of shares for each step, the start included.

/** Gradient descent with one step size: rho = (1 - eta lambda)^k. */
export function gradientDescent(eigenvalues, eta, steps) {
  return sequence(steps, (k) => eigenvalues.map((value) => (1 - eta * value) ** k));
}

/** Polyak's heavy ball: rho_{k+1} = rho_k - eta lambda rho_k + momentum (rho_k - rho_{k-1}). */
export function heavyBall(eigenvalues, eta, momentum, steps) {
  const shares = [eigenvalues.map(() => 1)];
  let before = shares[0];
  for (let k = 0; k < steps; k += 1) {
    const now = shares[k];
    shares.push(now.map((rho, i) => rho - eta * eigenvalues[i] * rho + momentum * (rho - before[i])));
    before = now;
  }
  return shares;
}

/** The heavy ball's best step size and momentum for eigenvalues in [low, high]. */
export function bestHeavyBall(low, high) {
  const [small, large] = [Math.sqrt(low), Math.sqrt(high)];
  return { eta: 4 / (small + large) ** 2, momentum: ((large - small) / (large + small)) ** 2 };
}

/** The Chebyshev iteration on [low, high]: T_k(z(lambda)) / T_k(z(0)), by the three-term recurrence of the quotients. */
export function chebyshev(eigenvalues, low, high, steps) {
  const radius = (high - low) / 2;
  const place = (value) => ((high + low) / 2 - value) / radius;
  const start = place(0);
  const shares = [eigenvalues.map(() => 1), eigenvalues.map((value) => place(value) / start)];
  let quotient = 1 / start; // T_{k-1} / T_k at z(0)
  for (let k = 2; k <= steps; k += 1) {
    const next = 1 / (2 * start - quotient);
    const [now, before] = [shares[k - 1], shares[k - 2]];
    const factor = next * quotient;
    shares.push(now.map((rho, i) => 2 * place(eigenvalues[i]) * next * rho - factor * before[i]));
    quotient = next;
  }
  return shares.slice(0, steps + 1);
}

/** Newton's iteration for the inverse from I / lambda_max: every step squares rho. */
export function newton(eigenvalues, highest, steps) {
  return sequence(steps, (k) => eigenvalues.map((value) => (1 - value / highest) ** (2 ** k)));
}

/** GD++: rho <- rho (1 - eta lambda), lambda <- lambda (1 - gamma lambda)^2; the last layer moves no lambda. */
export function gdPlusPlus(eigenvalues, { etas, gammas }) {
  const states = [{ shares: eigenvalues.map(() => 1), moved: [...eigenvalues] }];
  etas.forEach((eta, layer) => {
    const { shares, moved } = states[layer];
    const gamma = layer < etas.length - 1 ? gammas[layer] : 0;
    states.push({
      shares: shares.map((rho, i) => rho * (1 - eta * moved[i])),
      moved: moved.map((value) => value * (1 - gamma * value) ** 2),
    });
  });
  return states;
}

/** The same eta and gamma in every layer. */
export function tiedSchedule(eta, gamma, layers) {
  return { etas: Array(layers).fill(eta), gammas: Array(layers - 1).fill(gamma) };
}

/** eta = 3 gamma = (9/4)^l / lambda_max: the Newton-Schulz iteration. */
export function newtonSchulzSchedule(highest, layers) {
  const steps = sequence(layers - 1, (layer) => (9 / 4) ** layer / highest);
  return { etas: steps, gammas: steps.slice(0, -1).map((step) => step / 3) };
}

/** eta = gamma = g 9^l: a Chebyshev polynomial of degree (3^L - 1)/2. */
export function chebyshevSchedule(g, layers) {
  const steps = sequence(layers - 1, (layer) => g * 9 ** layer);
  return { etas: steps, gammas: steps.slice(0, -1) };
}

/** The gammas that shrink the condition number most in every layer, for eigenvalues in [low, high]. */
export function optimalCubicSchedule(low, high, layers) {
  const [etas, gammas] = [[], []];
  let [least, most] = [low, high];
  for (let layer = 1; layer < layers; layer += 1) {
    const gamma = 1 / (most + Math.sqrt(most * least) + least);
    etas.push(1 / most);
    gammas.push(gamma);
    const ends = [least, most].map((value) => value * (1 - gamma * value) ** 2);
    const inside = least <= 1 / (3 * gamma) && 1 / (3 * gamma) <= most;
    [least, most] = [Math.min(...ends), inside ? Math.max(...ends, 4 / (27 * gamma)) : Math.max(...ends)];
  }
  return { etas: [...etas, 2 / (least + most)], gammas };
}

/** The largest |rho|. */
export function worst(shares) {
  return Math.max(...shares.map(Math.abs));
}

/** f(0), ..., f(last). */
function sequence(last, f) {
  return Array.from({ length: last + 1 }, (_, index) => f(index));
}
