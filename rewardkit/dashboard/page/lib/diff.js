/** What two texts have in common: by words, by lines where they are long, in a bounded time. */
import "../vendor/diff.min.js";

const { Diff } = globalThis;
const WORDS_CHARS = 60_000;
const TIME_MS = 120;
const MOST_PIECES = 8_000;
const LEAST_SHARED = 0.15;

/**
 * Compare two texts: {way, left, right, changed}; way is "same", "words", "lines", "apart" where they share
 * next to nothing, or "none" where it would take too long.
 * A side is a list of [kind, text], where kind is "same", "gone" (left only) or "new" (right only).
 */
export function compared(left, right, timeMs = TIME_MS) {
  const whole = (way) => ({ way, left: [["same", left]], right: [["same", right]], changed: 0 });
  if (left === right) return whole("same");
  const timeout = Math.max(1, timeMs);
  const ways = left.length + right.length <= WORDS_CHARS ? ["words", "lines"] : ["lines"];
  for (const way of ways) {
    const parts = way === "words" ? Diff.diffWordsWithSpace(left, right, { timeout }) : Diff.diffLines(left, right, { timeout });
    if (parts && parts.length <= MOST_PIECES) return shared(parts) < LEAST_SHARED ? whole("apart") : { way, ...sides(parts) };
  }
  return whole("none");
}

/** The share of the longer text that both have, white space aside. */
function shared(parts) {
  const letters = (wanted) => parts.filter(wanted).reduce((sum, { value }) => sum + value.replace(/\s+/g, "").length, 0);
  const longer = Math.max(letters(({ added }) => !added), letters(({ removed }) => !removed), 1);
  return letters(({ added, removed }) => !added && !removed) / longer;
}

function sides(parts) {
  const left = [];
  const right = [];
  let changed = 0;
  for (const { added, removed, value } of parts) {
    if (added || removed) changed += 1;
    if (!added) left.push([removed ? "gone" : "same", value]);
    if (!removed) right.push([added ? "new" : "same", value]);
  }
  return { left, right, changed };
}
