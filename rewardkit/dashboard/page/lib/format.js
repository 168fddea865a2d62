/** How values are written: an unknown one is a dash, never 0. */

export const UNKNOWN = "–";
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86400;

const known = (x) => typeof x === "number" && Number.isFinite(x);

/** A number with four significant digits. */
export function number(x) {
  if (!known(x)) return UNKNOWN;
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e9 || size < 1e-4) return minus(x.toExponential(2));
  if (size >= 1e4) return minus(Math.round(x).toLocaleString("en-US"));
  return minus(String(Number(x.toPrecision(4))));
}

/** A number with its sign, for a difference. */
export function signed(x) {
  return known(x) && x > 0 ? `+${number(x)}` : number(x);
}

function minus(text) {
  return text.replace(/-/g, "−");
}

/** A whole number with separators. */
export function count(x) {
  return known(x) ? minus(Math.round(x).toLocaleString("en-US")) : UNKNOWN;
}

/** A number of things: "1 run", "2 runs". */
export function counted(x, one, many = `${one}s`) {
  return `${count(x)} ${x === 1 ? one : many}`;
}

/** Steps from one to another: "step 3", "steps 3 to 9". */
export function stepSpan(first, last) {
  return first === last ? `step ${count(first)}` : `steps ${count(first)} to ${count(last)}`;
}

/** A share as percent. */
export function percent(x) {
  if (!known(x)) return UNKNOWN;
  const hundredfold = x * 100;
  if (hundredfold !== 0 && Math.abs(hundredfold) < 0.1) return "<0.1%";
  return `${minus(String(Number(hundredfold.toFixed(Math.abs(hundredfold) < 10 ? 1 : 0))))}%`;
}

/** Epochs that passed, with a fraction. */
export function epochsPassed(x) {
  return known(x) ? x.toFixed(2) : UNKNOWN;
}

/** A duration in the unit that fits it. */
export function seconds(x) {
  if (!known(x)) return UNKNOWN;
  if (x === 0) return "0 s";
  if (x < 1e-3) return `${Number((x * 1e6).toPrecision(3))} µs`;
  if (x < 1) return `${Number((x * 1e3).toPrecision(3))} ms`;
  if (x < MINUTE) return `${Number(x.toPrecision(3))} s`;
  if (x < HOUR) return `${Math.floor(x / MINUTE)} min ${Math.floor(x % MINUTE)} s`;
  return `${Math.floor(x / HOUR)} h ${Math.floor((x % HOUR) / MINUTE)} min`;
}

/** A size in bytes. */
export function bytes(x) {
  if (!known(x)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = x;
  let place = 0;
  while (size >= 1000 && place < units.length - 1) {
    size /= 1000;
    place += 1;
  }
  return `${Number(size.toPrecision(3))} ${units[place]}`;
}

/** How long ago a moment was; a moment ahead of this clock is "now". */
export function ago(moment) {
  if (!known(moment)) return UNKNOWN;
  const passed = Date.now() / 1000 - moment;
  if (passed < 10) return "now";
  if (passed < MINUTE) return `${Math.floor(passed)} s ago`;
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min ago`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)} h ago`;
  if (passed < 30 * DAY) return `${Math.floor(passed / DAY)} d ago`;
  return clock(moment).slice(0, 10);
}

/** A moment as date and time of this machine. */
export function clock(moment) {
  if (!known(moment)) return UNKNOWN;
  const when = new Date(moment * 1000);
  const two = (x) => String(x).padStart(2, "0");
  const date = `${when.getFullYear()}-${two(when.getMonth() + 1)}-${two(when.getDate())}`;
  return `${date} ${two(when.getHours())}:${two(when.getMinutes())}:${two(when.getSeconds())}`;
}

/** A name with its middle left out where it is long: what tells names apart is often their end. */
export function shortened(name, most) {
  const text = Array.from(visible(name));
  if (text.length <= most) return text.join("");
  const end = Math.floor((most - 1) / 2);
  return `${text.slice(0, most - 1 - end).join("")}…${text.slice(-end).join("")}`;
}

// Control characters, bidi controls, what takes no room, fillers, tags and lone surrogates. Joiners are letters of some
// scripts and of emoji, and tell between others.
const JOINED = String.raw`\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Mn}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}`;
const HIDDEN = new RegExp(
  String.raw`[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb]` +
    String.raw`|[\u{e0000}-\u{e0fff}]|\p{Surrogate}|(?<![${JOINED}])[\u200c\u200d]`,
  "gu",
);
const CONTROLS =
  "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");
const NAMES = {
  0x7f: "DEL", 0x85: "NEL", 0x9b: "CSI", 0xad: "soft hyphen", 0x34f: "grapheme joiner", 0x61c: "ALM", 0x180e: "vowel separator",
  0x115f: "filler", 0x1160: "filler", 0x3164: "filler", 0xffa0: "filler",
  0x200b: "zero-width space", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "line separator", 0x2029: "paragraph separator",
  0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO",
  0x2060: "word joiner", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};

/** Text with everything that hides or reorders text written out by its name; tabs and line ends stay. */
export function visible(text) {
  if (text === null || text === undefined) return "";
  return String(text).replace(/\r\n/g, "\n").replace(HIDDEN, nameOf);
}

function nameOf(character) {
  const code = character.codePointAt(0);
  const name = CONTROLS[code] ?? NAMES[code];
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return `\u27e6${number}${name ? ` ${name}` : ""}\u27e7`;
}
