/** Numbers as people read them: few digits, with their unit. */

/** Three digits and a letter: `812`, `1.24k`, `3.1M`. */
export function count(value) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  for (const [least, letter] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e4, "k"],
  ]) {
    if (size >= least * 0.9995) return `${digits(value / (letter === "k" ? 1e3 : least))}${letter}`;
  }
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : digits(value);
}

/** A rate: small ones keep a digit after the point. */
export function rate(value) {
  return isNumber(value) ? `${count(value)}/s` : "–";
}

/** Seconds: `850 µs`, `12.4 ms`, `1.30 s`, `4 min`. */
export function seconds(value) {
  if (!isNumber(value)) return "–";
  if (value === 0) return "0 s";
  if (value < 1e-3) return `${digits(value * 1e6)} µs`;
  if (value < 1) return `${digits(value * 1e3)} ms`;
  return value < 120 ? `${digits(value)} s` : age(value);
}

/** How long ago: `12 s`, `4 min`, `3 h`, `2 d`. */
export function age(value) {
  if (!isNumber(value)) return "–";
  const past = Math.max(0, value);
  for (const [unit, size, most] of [
    ["s", 1, 120],
    ["min", 60, 7200],
    ["h", 3600, 172800],
  ]) {
    if (past < most) return `${Math.floor(past / size)} ${unit}`;
  }
  return `${Math.floor(past / 86400)} d`;
}

/** `512 B`, `1.50 GiB`. */
export function bytes(value) {
  if (!isNumber(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let [size, unit] = [value, 0];
  while (size >= 1023.95 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit === 0 ? Math.round(size) : digits(size)} ${units[unit]}`;
}

/** A share of 1. */
export function percent(value) {
  return isNumber(value) ? `${Math.round(100 * value)} %` : "–";
}

/** Cores. */
export function cores(value) {
  return isNumber(value) ? `${value.toFixed(2)}` : "–";
}

/** The clock of here; `at` in Unix seconds. */
export function clock(at) {
  return isNumber(at) ? new Date(at * 1000).toLocaleTimeString("en-GB") : "–";
}

/** The same with its day, where those beside it are of the last `span` seconds and a day is less. */
export function moment(at, span) {
  if (!isNumber(at) || span < 86000) return clock(at);
  const day = new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return `${day} ${clock(at).slice(0, 5)}`;
}

/** `1 task`, `3 tasks`. */
export function several(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

function digits(value) {
  const size = Math.abs(value);
  return size >= 99.95 ? value.toFixed(0) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}
