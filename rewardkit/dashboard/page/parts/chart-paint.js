/** How a chart looks: colours of the theme, marks of what happened, and the picture that is saved. */

const MARK_COLOURS = { version: "--accent", flag: "--warn", change: "--ink-2", resume: "--ink-3" };
const MARK_DASHES = { version: [], flag: [4, 3], change: [2, 3], resume: [1, 3] };
export const COLOURS = 8;
const SIZE = 4;
const NEAR_PX = 6;

/** The colour of a CSS custom property, or a colour itself; with alpha as #rrggbbaa. */
export function colour(name, alpha = 1) {
  const value = name.startsWith("--")
    ? getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888888"
    : name;
  if (alpha === 1) return value;
  return `${hex(value)}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
}

let brush = null;

function hex(value) {
  brush = brush || document.createElement("canvas").getContext("2d");
  brush.fillStyle = "#888888";
  brush.fillStyle = value;
  return brush.fillStyle.startsWith("#") ? brush.fillStyle : "#888888";
}

/** The colour of a series by its place; after all they come again. */
export function seriesColour(place) {
  return `--s${(place % COLOURS) + 1}`;
}

/** Draw the marks of what happened at steps: a line each, and a shape of its kind at the top. */
export function paintMarks(plot, marks) {
  const { ctx, bbox } = plot;
  const scale = window.devicePixelRatio || 1;
  const { min, max } = plot.scales.x;
  ctx.save();
  ctx.lineWidth = scale;
  for (const mark of marks) {
    if (mark.x < min || mark.x > max) continue;
    const x = Math.round(plot.valToPos(mark.x, "x", true)) + 0.5;
    ctx.strokeStyle = ctx.fillStyle = colour(MARK_COLOURS[mark.kind] || "--ink-3");
    ctx.setLineDash((MARK_DASHES[mark.kind] || []).map((length) => length * scale));
    ctx.globalAlpha = 0.65;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.globalAlpha = 1;
    ctx.setLineDash([]);
    paintShape(ctx, mark.kind, x, bbox.top - (SIZE + 1) * scale, SIZE * scale);
  }
  ctx.restore();
}

/**
 * Draw a mark below the axis at each step with a note: a hollow one where there is no value, for there none stands,
 * least of all 0; a small full one where calls failed that the value is without.
 */
export function paintGaps(plot, gaps) {
  const { ctx, bbox } = plot;
  const scale = window.devicePixelRatio || 1;
  const { min, max } = plot.scales.x;
  let free = -Infinity;
  ctx.save();
  ctx.lineWidth = 1.25 * scale;
  ctx.setLineDash([]);
  ctx.strokeStyle = ctx.fillStyle = colour("--ink-2");
  for (const { step, empty } of gaps) {
    const x = plot.valToPos(step, "x", true);
    if (step < min || step > max || x < free) continue;
    free = x + 2 * SIZE * scale;
    ctx.beginPath();
    ctx.arc(x, bbox.top + bbox.height + SIZE * scale, (empty ? 0.65 : 0.4) * SIZE * scale, 0, 2 * Math.PI);
    if (empty) ctx.stroke();
    else ctx.fill();
  }
  ctx.restore();
}

function paintShape(ctx, kind, x, y, size) {
  ctx.beginPath();
  if (kind === "version") polygon(ctx, [[x - size, y - size], [x + size, y - size], [x, y + size]]);
  else if (kind === "flag") polygon(ctx, [[x - size, y + size], [x, y - size], [x + size, y + size]]);
  else if (kind === "change") polygon(ctx, [[x - size, y], [x, y - size], [x + size, y], [x, y + size]]);
  else ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
  ctx.fill();
}

function polygon(ctx, points) {
  points.forEach(([x, y], place) => (place ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
  ctx.closePath();
}

/** The marks beside a place of the plot, in CSS pixels. */
export function marksNear(plot, marks, left) {
  return marks.filter((mark) => Math.abs(plot.valToPos(mark.x, "x") - left) <= NEAR_PX);
}

/** The chart as a PNG on the page's own ground, with its title and the names of its lines. */
export function pictureOf(plot, title, names) {
  const scale = window.devicePixelRatio || 1;
  const source = plot.ctx.canvas;
  const head = 56 * scale;
  const edge = 14 * scale;
  const canvas = document.createElement("canvas");
  canvas.width = source.width + 2 * edge;
  canvas.height = source.height + head + edge;
  const ctx = canvas.getContext("2d");
  const font = getComputedStyle(document.body).fontFamily;
  ctx.fillStyle = colour("--panel");
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.textBaseline = "middle";
  ctx.fillStyle = colour("--ink");
  ctx.font = `600 ${14 * scale}px ${font}`;
  ctx.fillText(title, edge, 18 * scale, canvas.width - 2 * edge);
  ctx.font = `${12 * scale}px ${font}`;
  let x = edge;
  for (const { name, shade } of names) {
    ctx.fillStyle = colour(shade);
    ctx.fillRect(x, 37 * scale, 12 * scale, 3 * scale);
    ctx.fillStyle = colour("--ink-2");
    ctx.fillText(name, x + 17 * scale, 39 * scale);
    x += (17 + 14) * scale + ctx.measureText(name).width;
    if (x > canvas.width) break;
  }
  ctx.drawImage(source, edge, head);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Hand a file to the browser, to be saved. */
export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${name.replace(/[^\w.-]+/g, "_").slice(0, 80) || "chart"}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
