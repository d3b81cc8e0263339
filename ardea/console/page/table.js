/** Tables that can be sorted by a column and searched; of many rows, a hundred at a time. */

import { h } from "./dom.js";
import { name } from "./text.js";
import * as units from "./units.js";

/** Rows that are shown at a time. */
const PAGE = 100;
const remembered = new Map();

/** What somebody has chosen for the table `id`, for as long as the page lives. */
function choice(id) {
  if (!remembered.has(id)) remembered.set(id, { sort: null, down: true, wanted: "", first: 0 });
  return remembered.get(id);
}

/**
 * A table.
 *
 * @param columns each `{title, cell(row), by(row)?, number?, wide?}`; a column with `by` can be sorted.
 * @param rows any objects; `key(row)` tells them apart, those that it does not by their order; `text(row)` is what a
 *   search looks through.
 * @param redraw is called when somebody has chosen something.
 */
export function table({ id, label, columns, rows, key, text, redraw, find = "Search", tone, extra = null, empty }) {
  const chosen = choice(id);
  const found = sorted(wanted(rows, text, chosen.wanted), columns, chosen);
  chosen.first = Math.min(chosen.first, Math.max(0, Math.floor((found.length - 1) / PAGE) * PAGE));
  const page = found.slice(chosen.first, chosen.first + PAGE);
  const keys = apart(page.map((row) => key(row)));
  const change = (values) => {
    Object.assign(chosen, values);
    redraw();
  };
  return h(
    "div",
    { class: "table", key: `table ${id}` },
    (text || extra) &&
      h("div", { class: "table-bar" }, text && search(id, find, chosen, change, rows.length, found.length), extra),
    h(
      "div",
      { class: "table-scroll", tabindex: 0, role: "region", "aria-label": label },
      h(
        "table",
        null,
        h("caption", { class: "sr" }, label),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            columns.map((column) => heading(column, chosen, change)),
          ),
        ),
        h(
          "tbody",
          null,
          page.map((row, index) => line(row, columns, keys[index], tone?.(row))),
        ),
      ),
      found.length === 0 &&
        h("p", { class: "nothing" }, rows.length ? "Nothing here has this in its name." : (empty ?? "There is none.")),
    ),
    found.length > PAGE && pages(chosen, found.length, change, label),
  );
}

function search(id, find, chosen, change, all, found) {
  return [
    h("input", {
      type: "search",
      class: "search",
      key: `search ${id}`,
      "aria-label": find,
      placeholder: find,
      value: chosen.wanted,
      spellcheck: "false",
      autocomplete: "off",
      on: { input: (event) => change({ wanted: event.target.value, first: 0 }) },
    }),
    h(
      "span",
      { class: "muted", role: "status" },
      chosen.wanted ? `${found} of ${units.several(all, "row")}` : units.several(all, "row"),
    ),
  ];
}

function wanted(rows, text, part) {
  const low = part.trim().toLowerCase();
  return low && text ? rows.filter((row) => text(row).toLowerCase().includes(low)) : rows;
}

function sorted(rows, columns, { sort, down }) {
  const by = columns.find((column) => column.title === sort)?.by;
  if (!by) return rows;
  const value = (row) => by(row) ?? (down ? -Infinity : Infinity);
  const order = (one, other) =>
    typeof one === "string" || typeof other === "string"
      ? String(one).localeCompare(String(other), "en", { numeric: true })
      : one - other;
  return [...rows].sort((one, other) => (down ? order(value(other), value(one)) : order(value(one), value(other))));
}

/** The keys, of which equal ones are numbered: `render` knows siblings by them. */
function apart(keys) {
  const times = new Map();
  return keys.map((key) => {
    times.set(key, (times.get(key) ?? 0) + 1);
    return times.get(key) === 1 ? key : `${key}#${times.get(key)}`;
  });
}

function heading(column, chosen, change) {
  const on = chosen.sort === column.title;
  const classes = column.number ? "number" : null;
  if (!column.by) return h("th", { scope: "col", class: classes }, column.title);
  const down = on ? !chosen.down : Boolean(column.number);
  return h(
    "th",
    {
      scope: "col",
      class: classes,
      "aria-sort": on ? (chosen.down ? "descending" : "ascending") : null,
      title: column.hint,
    },
    h(
      "button",
      { type: "button", class: "sort", on: { click: () => change({ sort: column.title, down, first: 0 }) } },
      column.title,
      h("span", { class: "sort-mark", "aria-hidden": "true" }, on ? (chosen.down ? "▾" : "▴") : "\u00a0"),
    ),
  );
}

function line(row, columns, key, tone) {
  return h(
    "tr",
    { key, class: tone || null },
    columns.map((column, number) =>
      h(
        number === 0 ? "th" : "td",
        { scope: number === 0 ? "row" : null, class: column.number ? "number" : null },
        plain(column.cell(row)),
      ),
    ),
  );
}

function plain(value) {
  if (value === null || value === undefined || value === "") return h("span", { class: "muted" }, "–");
  return typeof value === "string" ? name(value, 400) : value;
}

function pages(chosen, all, change, label) {
  const last = Math.min(all, chosen.first + PAGE);
  const step = (text, first, off) =>
    h("button", { type: "button", disabled: off, on: { click: () => change({ first }) } }, text);
  return h(
    "nav",
    { class: "pages", "aria-label": `Pages of ${label}` },
    step("Previous", Math.max(0, chosen.first - PAGE), chosen.first === 0),
    h("span", { role: "status" }, `${chosen.first + 1} to ${last} of ${all}`),
    step("Next", chosen.first + PAGE, last === all),
  );
}
