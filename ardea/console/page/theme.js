/** Light or dark: as the system has it, until somebody chooses. */

import { h } from "./dom.js";

const KEY = "ardea.theme";
const WORDS = { system: "System", light: "Light", dark: "Dark" };

function chosen() {
  const kept = localStorage.getItem(KEY);
  return kept in WORDS ? kept : "system";
}

export function apply() {
  if (chosen() === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen();
}

/** The switch. */
export function choice(redraw) {
  const change = (event) => {
    localStorage.setItem(KEY, event.target.value);
    apply();
    redraw();
  };
  return h(
    "label",
    { class: "theme" },
    h("span", { class: "sr" }, "Colours"),
    h(
      "select",
      { on: { change } },
      Object.entries(WORDS).map(([key, words]) => h("option", { value: key, selected: key === chosen() }, words)),
    ),
  );
}
