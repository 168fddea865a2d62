// A reporter of node:test that writes a line of JSON for each test. A suite is no test, and has none.
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const [folder, mark] = process.argv.slice(2);
const root = join(dirname(fileURLToPath(import.meta.url)), folder);
const titles = [];

function outcomeOf(type, data) {
  if (data.skip !== undefined && data.skip !== false) return "skipped";
  if (data.todo !== undefined && data.todo !== false) return "skipped"; // whose end does not count
  return type === "test:pass" ? "passed" : "failed";
}

function fileOf(file) {
  const path = file && file.startsWith("file:") ? fileURLToPath(file) : file || "";
  return relative(root, path);
}

// The line of the test's own file at which it failed.
function lineOf(error, file) {
  if (!error || !file) return 0;
  const path = file.startsWith("file:") ? fileURLToPath(file) : file;
  let line = 0;
  for (const frame of String(error.stack || "").split("\n")) {
    const place = frame.lastIndexOf(`${path}:`);
    if (place >= 0) line = parseInt(frame.slice(place + path.length + 1), 10) || line;
  }
  return line;
}

export default async function* report(source) {
  for await (const { type, data } of source) {
    if (type === "test:start") titles[data.nesting] = data.name;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const details = data.details || {};
    if (details.type === "suite") continue;
    const isOfSubtest = details.error && details.error.failureType === "subtestsFailed";
    const error = details.error && (details.error.cause || details.error);
    const test = [fileOf(data.file), ...titles.slice(0, data.nesting), data.name].join("::");
    yield `\n${mark}${JSON.stringify({ collected: [test] })}\n`;
    yield `${mark}${JSON.stringify({
      test,
      outcome: outcomeOf(type, data),
      duration_s: (details.duration_ms || 0) / 1000 + 1e-9,
      line: isOfSubtest ? 0 : lineOf(error, data.file),
      message: error ? String(error.message === undefined ? error : error.message).slice(0, 300) : "",
    })}\n`;
  }
  yield `\n${mark}${JSON.stringify({ end: 0 })}\n`;
}
