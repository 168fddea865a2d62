/** Small preferences of this browser, which works without them where storage is forbidden. */
import { useEffect, useState } from "./view.js";

const PREFIX = "rewardkit:";
export const THEMES = ["system", "light", "dark"];

/** Return a preference, or what stands in for it; with session it ends with the browser's tab. */
export function readPreference(name, otherwise, { session = false } = {}) {
  try {
    const found = (session ? window.sessionStorage : window.localStorage).getItem(PREFIX + name);
    return found === null ? otherwise : JSON.parse(found);
  } catch {
    return otherwise;
  }
}

/** Keep a preference. */
export function writePreference(name, value, { session = false } = {}) {
  try {
    (session ? window.sessionStorage : window.localStorage).setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Storage may be full or forbidden: the preference then lasts as long as the page.
  }
}

/** Return [theme, setTheme], and draw the page in it: "light", "dark" or "system". */
export function useTheme() {
  const [theme, setTheme] = useState(() => readPreference("theme", "system"));
  useEffect(() => applyTheme(theme), [theme]);
  const choose = (next) => {
    writePreference("theme", next);
    setTheme(next);
  };
  return [THEMES.includes(theme) ? theme : "system", choose];
}

function applyTheme(theme) {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const shown = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
    document.documentElement.dataset.theme = shown;
    document.dispatchEvent(new CustomEvent("theme", { detail: shown }));
  };
  apply();
  if (theme !== "system") return undefined;
  dark.addEventListener("change", apply);
  return () => dark.removeEventListener("change", apply);
}
