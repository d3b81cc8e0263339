/** A topology's graph: components as boxes from left to right, their edges with rates. */

import { h } from "./dom.js";
import { layout } from "./layout.js";
import { name } from "./text.js";
import * as units from "./units.js";
import { meter } from "./widgets.js";

const SIZE = { width: 208, height: 104, across: 92, down: 26 };
const MARGIN = 14;
const kept = { key: "", laid: null };
/** How large it is drawn: all of it in the width that there is, or as it is. */
const zoom = { fits: false, width: 0 };

/**
 * The graph.  `components`: `{component, kind, tasks, operations}`; `edges`: `{source, stream, target, rate}`; `rows`:
 * those of `top`, by component; `culprits`: components that hold spouts back; `link`: an address by component.
 */
export function graph({ components, edges, rows, culprits, link, redraw }) {
  const merged = together(edges);
  const laid = arranged(components, merged);
  const most = Math.max(1, ...merged.map((edge) => edge.rate ?? 0));
  const [width, height] = [laid.width + 2 * MARGIN, laid.height + 2 * MARGIN];
  const share = zoom.fits ? Math.min(1, zoom.width / width) : 1;
  const title = `Graph of ${units.several(components.length, "component")}, from left to right`;
  return [
    sizes(redraw),
    h(
      "div",
      { class: "graph-scroll", tabindex: 0, role: "region", "aria-label": title },
      h(
        "div",
        { class: "graph-size", style: { width: `${width * share}px`, height: `${height * share}px` } },
        h(
          "div",
          {
            class: "graph",
            style: { width: `${width}px`, height: `${height}px`, transform: share < 1 ? `scale(${share})` : "none" },
          },
          h(
            "svg",
            { class: "edges", width: laid.width + 2 * MARGIN, height: laid.height + 2 * MARGIN, "aria-hidden": "true" },
            merged.map((edge, number) => drawn(edge, laid.edges[number], most, rows, culprits)),
          ),
          h(
            "ul",
            { class: "nodes" },
            components.map((component) =>
              node(component, laid.nodes.get(component.component), rows, culprits, link, merged),
            ),
          ),
        ),
      ),
    ),
  ];
}

function sizes(redraw) {
  const change = (event) => {
    const panel = event.target.closest(".graph-panel").querySelector(".graph-scroll");
    [zoom.fits, zoom.width] = [event.target.checked, panel.clientWidth];
    redraw();
  };
  const box = h("input", { type: "checkbox", checked: zoom.fits, on: { change } });
  return h("label", { class: "check graph-fit" }, box, "Fit the width");
}

/** One edge for each pair of components: its streams share it. */
function together(edges) {
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.source}\n${edge.target}`;
    const one = found.get(key) ?? { source: edge.source, target: edge.target, rate: null, streams: [] };
    one.streams.push(edge);
    if (typeof edge.rate === "number") one.rate = (one.rate ?? 0) + edge.rate;
    found.set(key, one);
  }
  return [...found.values()];
}

function arranged(components, merged) {
  const names = components.map((each) => each.component);
  const pairs = merged.map((edge) => [edge.source, edge.target]);
  const key = JSON.stringify([names, pairs]);
  if (kept.key !== key) [kept.key, kept.laid] = [key, layout(names, pairs, SIZE)];
  return kept.laid;
}

function drawn(edge, points, most, rows, culprits) {
  if (!points?.length) return null;
  const moved = points.map(([x, y]) => [x + MARGIN, y + MARGIN]);
  const busy = edge.rate > 0;
  const thick = busy ? 1.25 + 3 * Math.sqrt(edge.rate / most) : 1.25;
  const [end, before] = [moved[moved.length - 1], moved[moved.length - 2]];
  const way = end[0] >= before[0] ? 1 : -1;
  const [x, y] = middle(moved);
  const label = edge.rate === null ? "" : units.rate(edge.rate);
  const streams =
    edge.streams.length > 1 ? units.several(edge.streams.length, "stream") : named(edge.streams[0].stream);
  const held = culprits.has(edge.target) ? " held" : "";
  return h(
    "g",
    { class: `edge${busy ? " busy" : ""}${held}`, key: `${edge.source}\n${edge.target}` },
    h("path", { d: curve(moved), "stroke-width": thick.toFixed(2) }),
    h("polygon", {
      points: `${end[0]},${end[1]} ${end[0] - 8 * way},${end[1] - 4.5} ${end[0] - 8 * way},${end[1] + 4.5}`,
    }),
    label && h("text", { class: "edge-rate", x, y: y - 7, "text-anchor": "middle" }, label),
    streams && h("text", { class: "edge-stream", x, y: y + 13, "text-anchor": "middle" }, name(streams, 16)),
  );
}

function named(stream) {
  return stream === "default" ? "" : stream;
}

function curve(points) {
  let text = `M${points[0].join(",")}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const half = (x1 - x0) / 2;
    text += y0 === y1 ? `L${x1},${y1}` : `C${x0 + half},${y0} ${x1 - half},${y1} ${x1},${y1}`;
  }
  return text;
}

/** The middle of the first gap between two layers. */
function middle(points) {
  return [(points[0][0] + points[1][0]) / 2, (points[0][1] + points[1][1]) / 2];
}

function node(component, at, rows, culprits, link, merged) {
  const row = rows.get(component.component);
  const culprit = culprits.get(component.component);
  const held = !culprit && row?.back_pressure >= 0.05;
  const failing = row && (row.failed > 0 || row.exceptions > 0);
  const classes = ["node", component.kind, culprit && "culprit", held && "held", failing && "failing"].filter(Boolean);
  const does = component.operations?.length ? component.operations.join(" · ") : "";
  return h(
    "li",
    { key: component.component, style: { left: `${at.x + MARGIN}px`, top: `${at.y + MARGIN}px` } },
    h(
      "a",
      {
        class: classes.join(" "),
        href: link(component.component),
        title: `${name(component.component, 400)} ${does}`.trim(),
      },
      h(
        "span",
        { class: "node-head" },
        h("span", { class: "node-name" }, name(component.component, 60)),
        h("span", { class: "node-tasks" }, `×${component.tasks}`),
      ),
      does && h("span", { class: "node-does" }, name(does, 60)),
      row ? facts(row, component, merged) : h("span", { class: "muted" }, "nothing heard yet"),
      h(
        "span",
        { class: "badges" },
        culprit && h("span", { class: "badge bad" }, `holds spouts back ${units.percent(culprit.share)}`),
        held && h("span", { class: "badge warn" }, `held back ${units.percent(row.back_pressure)}`),
        failing && !culprit && h("span", { class: "badge bad" }, `${units.rate(row.failed)} failed`),
      ),
    ),
  );
}

function facts(row, component, merged) {
  const spout = component.kind === "spout";
  const reads = merged.filter((edge) => edge.source === component.component).map((edge) => edge.target);
  const aloud = reads.length ? `, sends to ${reads.map((each) => name(each)).join(", ")}` : "";
  return [
    h(
      "span",
      { class: "node-facts" },
      h("span", null, h("b", null, units.rate(spout ? row.emitted : row.executed)), spout ? " emitted" : " in"),
      h("span", null, h("b", null, units.seconds(row.latency_p99)), " p99"),
    ),
    meter("capacity", row.capacity),
    h("span", { class: "sr" }, `${component.kind}${aloud}`),
  ];
}
