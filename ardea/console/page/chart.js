/** Lines over the last minutes or days.  All charts of a page share one hand, which the pointer or the arrow keys move. */

import { h } from "./dom.js";
import * as units from "./units.js";

const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [340, 132, 2, 14, 16];
const hand = { at: null };

/**
 * A chart.
 *
 * @param times Unix seconds, ascending.
 * @param series each `{name, values}`, a value or null for each of `times`; at most four.
 * @param unit makes text of a value; `least` is the smallest top of the scale, whose steps are of `base` 10 or 2.
 */
export function chart({ title, times, series, unit, redraw, least = 0, base = 10 }) {
  const at = index(times);
  const known = series.filter((each) => each.values.some((value) => value !== null));
  const most = nice(Math.max(least, ...known.flatMap((each) => each.values.filter((value) => value !== null))), base);
  const words = (i) =>
    `${when(times, i)}: ${series.map((each) => `${each.name} ${unit(each.values[i])}`).join(", ")}`;
  return h(
    "figure",
    { class: "chart", key: `chart ${title}` },
    h(
      "figcaption",
      null,
      h("span", { class: "chart-title" }, title),
      h("span", { class: "chart-time" }, hand.at !== null && times.length ? when(times, at) : ""),
    ),
    legend(series, at, unit),
    times.length < 2 || !known.length
      ? h("p", { class: "nothing" }, times.length < 2 ? "Samples are on their way." : "Nothing of this was measured.")
      : h(
          "div",
          {
            class: "chart-face",
            tabindex: 0,
            role: "slider",
            "aria-label": `${title}, samples over time`,
            "aria-valuemin": 0,
            "aria-valuemax": times.length - 1,
            "aria-valuenow": at,
            "aria-valuetext": words(at),
            on: handlers(times, redraw),
          },
          face(times, series, most, unit, at),
        ),
  );
}

/** A line without axes; `values` may hold null. */
export function spark(values, label) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return h("span", { class: "spark" });
  const most = Math.max(...known) || 1;
  const x = (i) => (i / (values.length - 1)) * 100;
  const y = (value) => 19 - (value / most) * 18;
  return h(
    "svg",
    { class: "spark", viewBox: "0 0 100 20", preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("path", { d: line(values, x, y) }),
  );
}

function legend(series, at, unit) {
  return h(
    "ul",
    { class: "legend" },
    series.map((each, number) =>
      h(
        "li",
        null,
        h("span", { class: `swatch s${number}`, "aria-hidden": "true" }),
        `${each.name} `,
        h("b", null, unit(each.values[at] ?? null)),
      ),
    ),
  );
}

function face(times, series, most, unit, at) {
  const [first, last] = [times[0], times.at(-1)];
  const x = (i) => LEFT + ((times[i] - first) / (last - first)) * (WIDTH - 2 * LEFT);
  const y = (value) => HEIGHT - BOTTOM - (value / most) * (HEIGHT - BOTTOM - TOP);
  const marks = [0.5, 1].map((share) => share * most);
  return h(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    h("line", { class: "axis", x1: 0, x2: WIDTH, y1: y(0), y2: y(0) }),
    marks.map((value) => h("line", { class: "grid", x1: 0, x2: WIDTH, y1: y(value), y2: y(value) })),
    series.length === 1 && h("path", { class: "area s0", d: area(series[0].values, x, y) }),
    series.map((each, number) => h("path", { class: `line s${number}`, d: line(each.values, x, y) })),
    marks.map((value) => h("text", { class: "tick", x: LEFT, y: y(value) - 3 }, unit(value))),
    h("text", { class: "tick", x: LEFT, y: HEIGHT - 3 }, when(times, 0)),
    h("text", { class: "tick", x: WIDTH - LEFT, y: HEIGHT - 3, "text-anchor": "end" }, when(times, times.length - 1)),
    hand.at !== null && h("line", { class: "hand", x1: x(at), x2: x(at), y1: TOP - 6, y2: y(0) }),
    series.map((each, number) =>
      each.values[at] === null || hand.at === null
        ? null
        : h("circle", { class: `dot s${number}`, cx: x(at), cy: y(each.values[at]), r: 3 }),
    ),
  );
}

function handlers(times, redraw) {
  const move = (at) => {
    hand.at = at;
    redraw();
  };
  return {
    pointermove: (event) => {
      const box = event.currentTarget.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      move(times[0] + share * (times.at(-1) - times[0]));
    },
    pointerleave: () => move(null),
    blur: () => move(null),
    keydown: (event) => {
      const steps = {
        ArrowLeft: -1,
        ArrowRight: 1,
        ArrowDown: -1,
        ArrowUp: 1,
        PageDown: -12,
        PageUp: 12,
        Home: -1e6,
        End: 1e6,
      };
      const step = steps[event.key];
      if (step === undefined) return;
      event.preventDefault();
      move(times[Math.min(times.length - 1, Math.max(0, index(times) + step))]);
    },
  };
}

function when(times, i) {
  return units.moment(times[i], times.at(-1) - times[0]);
}

/** The sample nearest to the hand; the last one where there is none. */
function index(times) {
  if (hand.at === null || !times.length) return Math.max(0, times.length - 1);
  let best = 0;
  times.forEach((time, i) => {
    if (Math.abs(time - hand.at) < Math.abs(times[best] - hand.at)) best = i;
  });
  return best;
}

function line(values, x, y) {
  let [text, pen] = ["", "M"];
  values.forEach((value, i) => {
    if (value === null) pen = "M";
    else [text, pen] = [`${text}${pen}${x(i).toFixed(1)},${y(value).toFixed(1)}`, "L"];
  });
  return text;
}

function area(values, x, y) {
  let [text, begun] = ["", null];
  for (let i = 0; i <= values.length; i++) {
    const value = values[i] ?? null;
    if (value !== null) {
      text += `${begun === null ? `M${x(i).toFixed(1)},${y(0)}` : ""}L${x(i).toFixed(1)},${y(value).toFixed(1)}`;
      begun ??= i;
    } else if (begun !== null) {
      text += `L${x(i - 1).toFixed(1)},${y(0)}Z`;
      begun = null;
    }
  }
  return text;
}

/** The next round number: 1, 2, 4 or 5 times a power of ten; of bytes, a power of two. */
function nice(value, base) {
  if (!(value > 0)) return 1;
  if (base === 2) return 2 ** Math.ceil(Math.log2(value));
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10, 20].map((step) => step * size).find((step) => step >= value * 0.999);
}
