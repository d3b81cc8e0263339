/** Elements out of code.  Whatever data says becomes text, never markup. */

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "polyline", "polygon"]);

/**
 * An element.  `attributes` are strings, numbers and booleans; beside them `on` (handlers by event), `style`
 * (properties), `key` (who it is among its siblings) and `own` (its children are not touched by `render`).
 */
export function h(tag, attributes, ...children) {
  const element = DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") listen(element, value);
    else if (name === "style")
      for (const [property, amount] of Object.entries(value)) element.style.setProperty(property, amount);
    else if (name === "key") element.itsKey = value;
    else if (name === "own") element.isOwn = true;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function listen(element, handlers) {
  element.handlers ??= {};
  for (const type of Object.keys(handlers)) if (!(type in element.handlers)) element.addEventListener(type, dispatch);
  Object.assign(element.handlers, handlers);
}

function dispatch(event) {
  event.currentTarget.handlers[event.type]?.(event);
}

/** Makes `root` hold `content`, and changes only what differs: focus, selection and scrolling stay. */
export function render(root, content) {
  const focused = document.activeElement;
  const next = document.createElement(root.nodeName);
  append(next, [content]);
  children(root, next);
  if (focused !== document.activeElement && focused?.isConnected && root.contains(focused))
    focused.focus({ preventScroll: true });
}

/** Stands for `node` in what is drawn: once it is in the page it stays there, and so do its focus and selection. */
export function placed(node) {
  if (!node.isConnected) return node;
  const stand = node.cloneNode(false);
  stand.itsKey = node.itsKey;
  return stand;
}

function same(live, next) {
  return live.nodeType === next.nodeType && live.nodeName === next.nodeName && live.itsKey === next.itsKey;
}

function morph(live, next) {
  if (live.nodeType === Node.TEXT_NODE) {
    if (live.data !== next.data) live.data = next.data;
    return;
  }
  attributes(live, next);
  if (live.style.cssText !== next.style.cssText) live.style.cssText = next.style.cssText;
  if (live.handlers)
    for (const type of Object.keys(live.handlers)) if (!next.handlers?.[type]) delete live.handlers[type];
  if (next.handlers) listen(live, next.handlers);
  if (!live.isOwn) children(live, next);
}

/** What people change themselves stays theirs: what they type, and what they have unfolded. */
function attributes(live, next) {
  for (const { name } of [...live.attributes]) {
    if (name !== "style" && name !== "open" && !next.hasAttribute(name)) live.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (name !== "style" && name !== "open" && live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
}

function children(live, next) {
  const known = new Map();
  for (const child of live.childNodes) if (child.itsKey !== undefined) known.set(child.itsKey, child);
  let cursor = live.firstChild;
  for (const wanted of [...next.childNodes]) {
    const keyed = wanted.itsKey !== undefined ? known.get(wanted.itsKey) : cursor;
    const match = keyed && same(keyed, wanted) ? keyed : null;
    if (match === null) {
      live.insertBefore(wanted, cursor);
      continue;
    }
    if (match === cursor) cursor = cursor.nextSibling;
    else live.insertBefore(match, cursor);
    morph(match, wanted);
  }
  while (cursor !== null) {
    const after = cursor.nextSibling;
    cursor.remove();
    cursor = after;
  }
}

/** Draws at most once a frame, however often it is called. */
export function oncePerFrame(draw) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    const go = () => {
      asked = false;
      draw();
    };
    if (document.hidden) setTimeout(go, 100);
    else requestAnimationFrame(go);
  };
}
