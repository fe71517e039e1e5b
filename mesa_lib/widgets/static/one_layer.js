// Exact expected losses of one gradient step, relative to the loss of predicting zero (mesa_lib.theory.one_layer).

/** E x^2 and E x^4 / (E x^2)^2 of a coordinate, for an input range of one. */
export function inputLaw(inputs) {
  return {
    uniform: { secondMoment: 1 / 3, kurtosis: 9 / 5 },
    normal: { secondMoment: 1, kurtosis: 3 },
    laplace: { secondMoment: 1, kurtosis: 6 },
    rademacher: { secondMoment: 1, kurtosis: 1 },
  }[inputs];
}

/** M + d - 2 + kappa + sigma^2 / m2: what a step divides by, for a context of M examples. */
function effectiveExamples({ xDim, inputs, noise }, length) {
  const { secondMoment, kurtosis } = inputLaw(inputs);
  return length + xDim - 2 + kurtosis + noise ** 2 / secondMoment;
}

/**
 * L(eta) / L0 of a layer made for N examples, P = (eta/N) I, on contexts of `testLength` examples.
 *
 * With c = eta m2 M / N it is 1 - 2 c + c^2 (M + d - 2 + kappa + sigma^2 / m2) / M.
 */
export function relativeLoss(tasks, eta, testLength = tasks.numContext) {
  const c = (eta * inputLaw(tasks.inputs).secondMoment * testLength) / tasks.numContext;
  return 1 - 2 * c + (c ** 2 * effectiveExamples(tasks, testLength)) / testLength;
}

/** The step size of least expected loss at the layer's own context length. */
export function optimalEta(tasks) {
  return tasks.numContext / effectiveExamples(tasks, tasks.numContext) / inputLaw(tasks.inputs).secondMoment;
}

/** The least expected loss, relative to that of predicting zero. */
export function optimalLoss(tasks) {
  return 1 - tasks.numContext / effectiveExamples(tasks, tasks.numContext);
}
