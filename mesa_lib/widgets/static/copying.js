// Copying by attention to a neighbour, and the induction that follows from one gradient step on the copied pairs.

/**
 * The attention of a softmax layer that copies (mesa_lib.copying_construction), one row for each reader, by key.
 *
 * A reader scores `sharpness` with the key `target(reader)` and 0 with all others; one that reads nobody (null) scores
 * minus `sharpness` with everybody. A sink of weight one takes what is left, so that rows add up to less than one.
 */
export function copyingAttention(readers, keys, sharpness, target) {
  return Array.from({ length: readers }, (_, reader) => {
    const aim = target(reader);
    const scores = Array.from({ length: keys }, (_, key) => (aim === null ? -sharpness : aim === key ? sharpness : 0));
    const top = Math.max(0, ...scores);
    const powers = scores.map((score) => Math.exp(score - top));
    const total = powers.reduce((sum, value) => sum + value, Math.exp(-top));
    return powers.map((value) => value / total);
  });
}

/** Whom the reader at a place of x_1, y_1, ..., x_N, y_N, x_q copies from: "next" x_i from y_i, "previous" y_i from x_i. */
export function pairTarget(direction, numContext) {
  return (place) => {
    if (place >= 2 * numContext) return null;
    if (direction === "next") return place % 2 === 0 ? place + 1 : null;
    return place % 2 === 1 ? place - 1 : null;
  };
}

/** The share that a softmax gives to everybody but its target, n e^-k / (1 + n e^-k) for n others. */
export function missedWeight(sharpness, numOthers) {
  const others = numOthers * Math.exp(-sharpness);
  return others / (1 + others);
}

/** The words of a text, in lower case. */
export function words(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}

/**
 * What one gradient step predicts for the last word of a sequence: a score for each of its distinct words, in order of
 * appearance. A softmax of this sharpness has copied, into every token, the word before it; the step has eta / N = 1 and
 * one-hot words.
 */
export function inductionScores(sequence, sharpness) {
  const count = sequence.length;
  const attention = copyingAttention(count, count, sharpness, (place) => (place > 0 ? place - 1 : null));
  const vocabulary = [...new Set(sequence)];
  const query = sequence[count - 1];
  // How much of the last word the layer has copied into each token.
  const copied = attention.map((row) => row.reduce((sum, weight, key) => sum + (sequence[key] === query ? weight : 0), 0));
  const score = (word) => copied.reduce((sum, share, place) => sum + (sequence[place] === word ? share : 0), 0);
  return { vocabulary, scores: vocabulary.map(score) };
}

/** How often each word has come right after the last word of the sequence, before. */
export function followers(sequence) {
  const query = sequence[sequence.length - 1];
  const after = (word) => sequence.filter((one, place) => place > 0 && one === word && sequence[place - 1] === query).length;
  return [...new Set(sequence)].map(after);
}
