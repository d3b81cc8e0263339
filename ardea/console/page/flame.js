/** A profile as a flame graph: calls below their callers, as wide as their share of the time. */

import { h } from "./dom.js";
import { name, shown } from "./text.js";
import * as units from "./units.js";
import { button, nothing } from "./widgets.js";

/** Calls narrower than this share are left out. */
const NARROWEST = 0.002;
const DEEPEST = 60;

/** `found.document`: the profile; `found.zoom`: the call that takes the whole width, or null. */
export function flames(found, redraw) {
  const { threads } = found.document;
  if (!threads.length) return nothing("No thread was seen.");
  return threads.map((thread) => one(thread, found, redraw));
}

function one(thread, found, redraw) {
  const top = found.zoom?.thread === thread ? found.zoom.frame : thread.tree;
  const rows = [];
  lay(top, 0, 1, 0, rows);
  const zoom = (frame) => {
    found.zoom = frame === thread.tree ? null : { thread, frame };
    redraw();
  };
  return h(
    "figure",
    { key: `flames ${thread.name}` },
    h(
      "figcaption",
      { class: "bar" },
      h("b", null, name(thread.name, 100)),
      ` ${units.count(thread.tree.samples)} samples`,
      top !== thread.tree && button("The whole thread", () => zoom(thread.tree)),
    ),
    h(
      "div",
      { class: "flames" },
      rows.map((row) =>
        h(
          "div",
          { class: "flame-row" },
          row.map((call) => bar(call, thread, zoom)),
        ),
      ),
    ),
  );
}

function lay(frame, left, width, depth, rows) {
  if (width < NARROWEST || depth >= DEEPEST) return;
  (rows[depth] ??= []).push({ frame, left, width });
  let at = left;
  for (const child of frame.children ?? []) {
    const share = frame.samples ? (child.samples / frame.samples) * width : 0;
    lay(child, at, share, depth + 1, rows);
    at += share;
  }
}

function bar({ frame, left, width }, thread, zoom) {
  const share = units.percent(frame.samples / thread.tree.samples);
  const words = `${shown(frame.function, 200)} ${frame.file ? `${shown(frame.file, 300)}:${frame.line}` : ""}`.trim();
  return h(
    "button",
    {
      type: "button",
      class: frame.own ? "flame own" : "flame",
      style: { left: `${100 * left}%`, width: `${100 * width}%` },
      title: `${words}: ${share}`,
      "aria-label": `${words}: ${share}, ${frame.samples} samples`,
      on: { click: () => zoom(frame) },
    },
    name(frame.function, 120),
  );
}
