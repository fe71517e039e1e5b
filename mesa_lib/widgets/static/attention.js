// One layer of linear self-attention and the weights of Proposition 1; matrices are lists of rows, tokens lists of numbers.

/** The matrix product. */
export function multiply(a, b) {
  return a.map((row) => b[0].map((_, column) => row.reduce((sum, value, k) => sum + value * b[k][column], 0)));
}

/** Rows become columns. */
export function transpose(matrix) {
  return matrix[0].map((_, column) => matrix.map((row) => row[column]));
}

/** W_K = W_Q = diag(I, 0), W_V = [[0, 0], [W_0, -I]], P = (eta/N) I, with x first and then y. */
export function gdConstruction(eta, w0, numContext) {
  const [yDim, xDim] = [w0.length, w0[0].length];
  const size = xDim + yDim;
  const square = (entry) => Array.from({ length: size }, (_, i) => Array.from({ length: size }, (_, j) => entry(i, j)));
  const selectX = square((i, j) => (i === j && i < xDim ? 1 : 0));
  const value = (i, j) => (i < xDim ? 0 : j < xDim ? w0[i - xDim][j] : i === j ? -1 : 0);
  return {
    wK: selectX,
    wQ: square((i, j) => selectX[i][j]),
    wV: square(value),
    wP: square((i, j) => (i === j ? eta / numContext : 0)),
  };
}

/** P (sum_i v_i k_i^T) W_Q over the context: the matrix whose image of a token the layer adds to it. */
export function fastWeights({ wK, wQ, wV, wP }, context) {
  const moment = multiply(transpose(context), context);
  return [transpose(wK), wQ].reduce(multiply, multiply(multiply(wP, wV), moment));
}

/** Tokens e <- e + M e, context and query alike; keys and values come from the context alone. */
export function linearSelfAttention(weights, { context, query }) {
  const written = transpose(fastWeights(weights, context));
  const moved = (tokens) => {
    const added = multiply(tokens, written);
    return tokens.map((token, i) => token.map((value, k) => value + added[i][k]));
  };
  return { context: moved(context), query: moved(query) };
}

/** The prediction is minus the y-slot, the last numbers of a query token. */
export function readPrediction(token, yDim) {
  return token.slice(token.length - yDim).map((value) => -value);
}
