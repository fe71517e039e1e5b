// Regression and smoothing with features m(x), one input and one target; features are known on an even grid.

/** m(x) for each input, by straight lines between the values of `table` (one row a feature) on a grid from -range to range. */
export function featuresAt(table, range, inputs) {
  const last = table[0].length - 1;
  return inputs.map((x) => {
    const place = Math.min(last, Math.max(0, ((x + range) / (2 * range)) * last));
    const cell = Math.min(last - 1, Math.floor(place));
    const share = place - cell;
    return table.map((row) => row[cell] * (1 - share) + row[cell + 1] * share);
  });
}

/** The weights on features after each of some gradient steps on 1/(2N) sum_i (w . m_i - y_i)^2, the start w = 0 included. */
export function descend(features, y, eta, steps) {
  const path = [features[0].map(() => 0)];
  for (let step = 0; step < steps; step += 1) {
    const now = path[step];
    const gradient = now.map(() => 0);
    features.forEach((m, i) => {
      const residual = dot(now, m) - y[i];
      m.forEach((value, k) => (gradient[k] += (residual * value) / y.length));
    });
    path.push(now.map((weight, k) => weight - eta * gradient[k]));
  }
  return path;
}

/** The least-squares weights of least norm: eigenvalues below `cutoff` times the largest count as zero. */
export function leastSquares(features, y, cutoff = 1e-9) {
  const size = features[0].length;
  const square = (entry) => Array.from({ length: size }, (_, a) => Array.from({ length: size }, (_, b) => entry(a, b)));
  const moment = square((a, b) => features.reduce((sum, m) => sum + m[a] * m[b], 0));
  const target = features[0].map((_, a) => features.reduce((sum, m, i) => sum + m[a] * y[i], 0));
  const { values, vectors } = eigen(moment);
  const least = cutoff * Math.max(...values.map(Math.abs));
  return target.map((_, a) =>
    values.reduce((sum, value, k) => {
      if (Math.abs(value) <= least) return sum;
      return sum + (vectors[a][k] * target.reduce((total, entry, b) => total + entry * vectors[b][k], 0)) / value;
    }, 0),
  );
}

/** The mean of the targets with weights exp(beta m(x_i) . m(x)): softmax attention over features, by query. */
export function smooth(features, y, beta, queries) {
  return queries.map((query) => {
    const scores = features.map((m) => beta * dot(m, query));
    const top = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - top));
    const total = powers.reduce((sum, value) => sum + value, 0);
    return powers.reduce((sum, value, i) => sum + value * y[i], 0) / total;
  });
}

/** The largest step size at which descent converges: 2 over the largest eigenvalue of the features' second moment. */
export function largestStep(features) {
  const size = features[0].length;
  const entry = (a, b) => features.reduce((sum, m) => sum + m[a] * m[b], 0) / features.length;
  const moment = Array.from({ length: size }, (_, a) => Array.from({ length: size }, (_, b) => entry(a, b)));
  return 2 / Math.max(...eigen(moment).values);
}

export function dot(a, b) {
  return a.reduce((sum, value, k) => sum + value * b[k], 0);
}

/** Eigenvalues and eigenvectors (as columns) of a small symmetric matrix, by Jacobi's rotations. */
export function eigen(matrix) {
  const size = matrix.length;
  const a = matrix.map((row) => [...row]);
  const vectors = a.map((_, i) => a.map((_, j) => (i === j ? 1 : 0)));
  for (let sweep = 0; sweep < 50; sweep += 1) {
    let off = 0;
    for (let p = 0; p < size; p += 1) for (let q = p + 1; q < size; q += 1) off += a[p][q] ** 2;
    if (off < 1e-30 * (1 + a.reduce((sum, row, i) => sum + row[i] ** 2, 0))) break;
    for (let p = 0; p < size; p += 1) {
      for (let q = p + 1; q < size; q += 1) {
        if (a[p][q] === 0) continue;
        const angle = 0.5 * Math.atan2(2 * a[p][q], a[p][p] - a[q][q]);
        const [c, s] = [Math.cos(angle), Math.sin(angle)];
        for (let k = 0; k < size; k += 1) [a[k][p], a[k][q]] = [c * a[k][p] + s * a[k][q], c * a[k][q] - s * a[k][p]];
        for (let k = 0; k < size; k += 1) [a[p][k], a[q][k]] = [c * a[p][k] + s * a[q][k], c * a[q][k] - s * a[p][k]];
        for (const row of vectors) [row[p], row[q]] = [c * row[p] + s * row[q], c * row[q] - s * row[p]];
      }
    }
  }
  return { values: a.map((row, i) => row[i]), vectors };
}
