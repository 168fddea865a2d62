// Imports the files of tests one after the other; their tests run when all of them are there.
import { writeSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, mark, ...files] = process.argv.slice(2);
process.chdir(folder);
for (const file of files) {
  try {
    await import(pathToFileURL(resolve(file)).href);
  } catch (error) {
    const message = String((error && error.stack) || error).slice(0, 300);
    writeSync(1, `\n${mark}${JSON.stringify({ broken: file, message })}\n`);
  }
}
