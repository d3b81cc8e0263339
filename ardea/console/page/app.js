/** The page: its address says what is shown; one topology is followed at a time. */

import { steady, woke } from "./client.js";
import { oncePerFrame, h, render } from "./dom.js";
import { TopologyFeed } from "./feed.js";
import * as session from "./session.js";
import { name } from "./text.js";
import * as theme from "./theme.js";
import * as units from "./units.js";
import { button, notice } from "./widgets.js";
import { askForToken } from "./views/token.js";
import { topologies } from "./views/topologies.js";
import { topology } from "./views/topology.js";

const [head, link, main, says] = ["head", "link", "main", "says"].map((id) => document.getElementById(id));
/** Milliseconds after which ages are drawn anew, though nothing has come. */
const TICK = 1000;

const page = { feed: null, view: null, parts: null, redraw: oncePerFrame(draw) };

/** The feed of this topology; that of another one is closed. */
function follow(id) {
  if (page.feed?.topology === id) return page.feed;
  page.feed?.close();
  page.feed = null;
  if (id === null) return null;
  page.feed = new TopologyFeed(id, page.redraw);
  page.feed.open();
  return page.feed;
}

function route() {
  if (location.hash === "#main" && page.view !== null) return; // the link that skips to the content
  session.takeFromAddress();
  const parts = location.hash.slice(1).split("/").filter(Boolean).map(decoded);
  page.view?.close?.();
  page.parts = parts;
  if (session.token() === null) page.view = askForToken(page, route);
  else if (parts[0] === "t" && parts[1]) page.view = topology(page, follow(parts[1]), parts.slice(2));
  else page.view = topologies(page, follow(null));
  document.title = `${page.view.title} · Ardea`;
  draw();
  window.scrollTo(0, 0);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function draw() {
  if (page.view === null) return;
  render(head, header());
  render(link, reached());
  render(says, [h("p", null, page.view.title), h("p", null, missing())]);
  try {
    render(main, page.view.draw());
  } catch (error) {
    render(main, notice("bad", `This page has a fault, and cannot show what it knows: ${error.message}`));
    throw error; // the browser's console says where
  }
}

function header() {
  const [, id] = page.parts[0] === "t" ? page.parts : [];
  return [
    h(
      "a",
      { class: "brand", href: "#/", "aria-label": "Ardea, all topologies" },
      h("span", { class: "brand-mark", "aria-hidden": "true" }),
      "Ardea",
    ),
    h(
      "nav",
      { class: "crumbs", "aria-label": "Where you are" },
      h("a", { href: "#/", "aria-current": id ? null : "page" }, "Topologies"),
      id && [h("span", { "aria-hidden": "true" }, "/"), h("span", { class: "crumb" }, name(id, 60))],
    ),
    h("span", { class: "grow" }),
    light(),
    theme.choice(page.redraw),
    session.token() !== null && button("Forget the token", forget, { class: "quiet wide" }),
  ];
}

function light() {
  const found = page.view.link;
  if (!found) return null;
  const [word, kind] = { live: ["live", "ok"], connecting: ["connecting", "wait"] }[found.state] ?? [
    "not connected",
    "bad",
  ];
  return h(
    "span",
    { class: `light ${kind}` },
    h("span", { class: "mark", "aria-hidden": "true" }, kind === "ok" ? "●" : kind === "wait" ? "◌" : "✖"),
    word,
  );
}

/** Why nothing comes from the console: for `says`, so that a screen reader says it once.  Null: something comes. */
function missing() {
  const found = page.view.link;
  if (!found || found.state === "live" || found.state === "connecting") return null;
  if (found.state === "unknown") return "The console does not know this token.";
  const what = found.state === "refused" ? "The console refuses" : "The console is gone";
  return `${what}: ${found.why}${found.hint ? ` (${found.hint})` : ""}`;
}

/** What people have to know when the console does not answer. */
function reached() {
  const found = page.view.link;
  const what = missing();
  if (what === null) return null;
  if (found.state === "unknown") return notice("bad", `${what} `, button("Use another token", forget));
  const left = Math.max(0, Math.ceil((found.next - steady()) / 1000));
  const since = units.age((steady() - found.since) / 1000);
  const age = page.view.age;
  const kept = age === null || age === undefined ? "" : ` What is shown here is ${units.age(age)} old.`;
  return notice(
    "bad",
    h("b", null, what),
    `, since ${since}.${kept} The next try is in ${left} s. `,
    button("Try now", () => page.view.again?.()),
  );
}

function forget() {
  session.forget();
  follow(null);
  route();
}

/** A tab that is hidden asks for nothing.  `anew`: what is asked for already is asked again. */
function listen(anew = false) {
  for (const each of [page.feed, ...(page.view?.repeated ?? [])]) {
    if (document.hidden || anew) each?.close();
    if (!document.hidden) each?.open();
  }
  page.redraw();
}

function tick() {
  if (woke()) listen(true);
  else if (!document.hidden) page.redraw();
}

document.addEventListener("visibilitychange", () => listen());
window.addEventListener("hashchange", route);
setInterval(tick, TICK);
theme.apply();
route();
