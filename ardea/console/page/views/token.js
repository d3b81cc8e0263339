/** Asks for the token, when the link had none. */

import { h } from "../dom.js";
import * as session from "../session.js";

export function askForToken(page, done) {
  const submit = (event) => {
    event.preventDefault();
    const given = new FormData(event.target).get("token").trim();
    if (!given) return;
    session.keep(given);
    done();
  };
  return {
    title: "Token",
    draw: () =>
      h(
        "form",
        { class: "panel token", on: { submit } },
        h("h1", null, "This console needs its token"),
        h("p", null, "`ardea ui` prints a link that has it. On Kubernetes, it is in the chart's Secret."),
        h("label", { for: "token" }, "Token"),
        h("input", {
          id: "token",
          name: "token",
          type: "password",
          autocomplete: "off",
          required: true,
          spellcheck: "false",
        }),
        h("p", { class: "muted" }, "It is kept in this tab only, and forgotten with it."),
        h("button", { type: "submit", class: "primary" }, "Go on"),
      ),
  };
}
