// Numbers as readers see them.

/** A number with a fixed count of digits, a real minus sign, and no minus before zero. */
export function fixed(value, digits = 2) {
  if (Number.isNaN(value)) return "not a number";
  if (Math.abs(value) >= 1e6) return short(value);
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/** A number with about two significant digits: 0.34, 12, 4.5·10⁻⁷. */
export function short(value) {
  if (Number.isNaN(value)) return "not a number";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 0.01 && size < 1e4) return fixed(value, size >= 10 ? 0 : size >= 1 ? 1 : size >= 0.1 ? 2 : 3);
  const exponent = Math.floor(Math.log10(size));
  return `${fixed(value / 10 ** exponent, 1)}·10${superscript(exponent)}`;
}

/** A whole number as an exponent: -7 is ⁻⁷. */
export function superscript(value) {
  return [...String(value)].map((sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(sign)])).join("");
}

/** A number with its sign: +0.30, −0.30. */
export function signed(value, digits = 2) {
  const text = fixed(value, digits);
  return text.startsWith("−") || Number(text) === 0 ? text : `+${text}`;
}

/** The value of [low, high] next to a given one. */
export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

/** Round numbers inside [low, high], about `count` of them. */
export function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * (1 - 1e-9)) ?? 10);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
}

/** Powers of ten inside [low, high], at most about `count` of them; 1 is among them where it is inside. */
export function logTicks(low, high, count = 6) {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first) / count));
  const powers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return powers.filter((power) => power % step === 0).map((power) => 10 ** power);
}

/** Numbers from low to high, both included. */
export function linspace(low, high, count) {
  return Array.from({ length: count }, (_, index) => low + ((high - low) * index) / (count - 1));
}
