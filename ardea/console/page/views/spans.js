/** How far back the charts of a view go: what the master keeps or, where a Prometheus is named, hours and days. */

import { ago } from "../client.js";
import { h } from "../dom.js";
import { shown } from "../text.js";
import * as units from "../units.js";
import { button, panel } from "../widgets.js";

const SPANS = [
  ["15 min", 0],
  ["1 h", 1],
  ["6 h", 6],
  ["24 h", 24],
  ["7 d", 168],
];

/** The charts of a view with what they are of. */
export function lately(history, charts) {
  return panel("Lately", {}, spans(history), h("div", { class: "charts" }, charts));
}

function spans(history) {
  return h(
    "div",
    { class: "spans" },
    history.longer &&
      h(
        "div",
        { role: "group", "aria-label": "How far back", class: "choices" },
        SPANS.map(([label, hours]) =>
          button(label, () => history.reach(hours), { key: label, "aria-pressed": String(hours === history.hours) }),
        ),
      ),
    h("p", { class: "muted" }, since(history)),
  );
}

/** Since when there are samples, or why there are none, or none that are newer. */
function since(history) {
  const why = shown(history.why || history.link.why, 200);
  if (history.since === null) return why;
  if (why) return `Nothing newer is known: ${why}`;
  const first = history.times[0] ?? history.since;
  return `since ${units.moment(first, ago(first))}`;
}
