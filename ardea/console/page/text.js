/** Text of strangers, made harmless: no escape sequence, no hidden or turned character, no endless line. */

/** Characters that are shown of one text at most. */
export const MOST = 10000;
/** Characters that a name keeps in a table or a graph. */
export const NAME = 80;

const ESC = "\u001b",
  BEL = "\u0007",
  CSI = "\u009b";
/** ANSI's sequences: of colours and cursors, of titles and links, and the short ones. */
const ANSI = new RegExp(
  `(?:${ESC}\\[|${CSI})[0-?]*[ -/]*[@-~]|${ESC}[\\]PX^_][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?|${ESC}[ -/]*[0-~]`,
  "g",
);
/** Controls, and what turns, joins or hides text: bidirectional marks, zero widths, separators, tags. */
const CONTROLS = "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f";
const MARKS = "\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb";
const HIDDEN = new RegExp(`[${CONTROLS}${MARKS}]|[\\u{e0000}-\\u{e007f}]`, "gu");
const LONE = /\p{Surrogate}/gu;

/** What is shown of `value`, in at most `most` characters; what hides becomes visible; line ends stay. */
export function shown(value, most = MOST) {
  const whole = typeof value === "string" ? value : String(value ?? "");
  const kept = whole.length > most ? whole.slice(0, most) : whole;
  const text = kept.replace(ANSI, "").replace(HIDDEN, visible).replace(LONE, "\ufffd");
  return whole.length > most ? `${text}… (${whole.length.toLocaleString("en")} characters)` : text;
}

/** The same of a name: short, and on one line. */
export function name(value, most = NAME) {
  const whole = String(value ?? "");
  const kept = whole.length > most ? `${whole.slice(0, most - 1)}…` : whole;
  return shown(kept).replace(/[\n\t]/g, visible);
}

function visible(character) {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
