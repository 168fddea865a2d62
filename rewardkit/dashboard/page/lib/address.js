/**
 * The address bar holds the whole state: /runs/<run>/<tab>?key=value. A run's name may have its subfolders' before it.
 * A page that was saved to a file has all this behind a #, for the path is the file's.
 */
import { PANELS, TITLES } from "./panels.js";
import { SAVED } from "./saved.js";
import { useEffect, useState } from "./view.js";

const FIRST = PANELS[0].name;

/** The path of the list of runs; a saved page has one run, and begins with what was saved of it. */
export const HOME = SAVED ? `#${SAVED.start}` : "/";

const PASSING = ["graph", "entry"];
const queries = new Map();
const listeners = new Set();
let top = 0;
let last = null;
let current = null;

/** Return {run, tab, query} of the address bar; the list of runs has neither run nor tab. */
export function address() {
  const { pathname, search } = here();
  if (last === pathname + search) return current;
  last = pathname + search;
  current = parse(pathname, search);
  if (current.run) queries.set(`${current.run}/${current.tab}`, current.query);
  return current;
}

function here() {
  if (!SAVED) return window.location;
  const told = new URL(window.location.hash.slice(1) || SAVED.start, "http://page");
  return parse(told.pathname, told.search).run === SAVED.run ? told : new URL(SAVED.start, "http://page");
}

/** Return {run, tab, query} of a path and its query. */
export function parse(pathname, search) {
  const [root, ...parts] = pathname.split("/").filter(Boolean).map(decoded);
  const query = Object.fromEntries(new URLSearchParams(search));
  if (root !== "runs" || !parts.length) return { run: null, tab: null, query };
  const tab = parts.length > 1 && Object.hasOwn(TITLES, parts.at(-1)) ? parts.pop() : FIRST;
  return { run: parts.join("/"), tab, query };
}

function placeOf(run) {
  return `/runs/${run.split("/").map(encodeURIComponent).join("/")}`;
}

/** Return the path at which a view of a run is asked for. */
export function of(run, view) {
  return `/api${placeOf(run)}/${view}`;
}

/** Return a part of an address as it was before it was encoded; one that cannot be decoded stays. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * Return the address that a change leads to.
 * Another run or tab begins with an empty query; otherwise the given keys are merged, and null removes one.
 */
export function href({ run, tab, query = {} } = {}) {
  const now = address();
  const next = { run: run === undefined ? now.run : run, tab: tab === undefined ? now.tab : tab };
  const same = next.run === now.run && next.tab === now.tab;
  return pathOf(next.run, next.tab, { ...(same ? now.query : {}), ...query });
}

function pathOf(run, tab, query) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  const path = run ? `${SAVED ? "#" : ""}${placeOf(run)}/${tab || FIRST}` : HOME;
  return asked ? `${path}?${asked}` : path;
}

/** Return the address of a tab as it was left; of the one that is shown, as it is at first. What was opened in it is closed. */
export function left(run, tab) {
  const now = address();
  if (now.run === run && now.tab === tab) return pathOf(run, tab, {});
  const query = queries.get(`${run}/${tab}`) || {};
  return pathOf(run, tab, Object.fromEntries(Object.entries(query).filter(([key]) => !PASSING.includes(key))));
}

/** Go to another address; with replace the step is not kept in the history. */
export function go(change, { replace = false } = {}) {
  visit(href(change), { replace });
}

/** Go to a path of this page. */
export function visit(path, { replace = false } = {}) {
  const { pathname, search } = here();
  if (path === `${SAVED ? "#" : ""}${pathname}${search}`) return;
  if (replace) {
    window.history.replaceState(window.history.state, "", path);
  } else {
    window.history.replaceState({ top: window.scrollY }, "");
    window.history.pushState(null, "", path);
    top = 0;
  }
  announce();
}

/** Return how far down the shown entry of the history was when it was left. */
export function scrolledTo() {
  return top;
}

function announce() {
  listeners.forEach((listener) => listener(address()));
}

window.history.scrollRestoration = "manual";
window.addEventListener("popstate", (event) => {
  top = event.state?.top || 0;
  announce();
});

/** Return {run, tab, query}, drawn again whenever the address changes. */
export function useAddress() {
  const [now, setNow] = useState(address);
  useEffect(() => {
    listeners.add(setNow);
    setNow(address());
    return () => listeners.delete(setNow);
  }, []);
  return now;
}

/** Turn a plain click on a link within the page into a visit without a reload. */
export function followLinks() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.target || link.hasAttribute("download") || link.origin !== window.location.origin) return;
    const path = SAVED ? link.getAttribute("href") : link.pathname + link.search;
    if (!["/", "#/"].includes(path) && !/^#?\/(runs\/|\?)/.test(path)) return;
    event.preventDefault();
    visit(path);
  });
}
