/** The token: it comes in the part of a link after `#`, stays in this tab, and leaves the address at once. */

const KEY = "ardea.token";

/** Takes the token out of the address, where there is one. */
export function takeFromAddress() {
  const fragment = location.hash.slice(1);
  if (!fragment || fragment.startsWith("/")) return;
  const fields = new URLSearchParams(fragment);
  const given = fields.get("token");
  if (given) keep(given);
  const topology = fields.get("topology");
  const where = topology ? `/t/${encodeURIComponent(topology)}` : "/";
  history.replaceState(null, "", `${location.pathname}${location.search}#${where}`);
}

export function token() {
  return sessionStorage.getItem(KEY);
}

export function keep(given) {
  sessionStorage.setItem(KEY, given.trim());
}

export function forget() {
  sessionStorage.removeItem(KEY);
}
