// Asks Mermaid's own parser about pictures: node parse.mjs DIRECTORY FILE. DIRECTORY is the one that
// scripts/mermaid-parser prints, FILE a JSON list of texts. Prints what the parser says of each text
// that it does not take, and how many it took; exits with 1 when there is one that it did not.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [directory, file] = process.argv.slice(2);
const { resolve } = createRequire(join(directory, 'here.js'));
const load = (name) => import(pathToFileURL(resolve(name)));

// What it cleans labels with wants a page.
const { JSDOM } = await load('jsdom');
const page = new JSDOM('');
globalThis.window = page.window;
globalThis.document = page.window.document;
const { default: mermaid } = await load('mermaid');

const texts = JSON.parse(readFileSync(file, 'utf8'));
let taken = 0;
for (const text of texts) {
  try {
    await mermaid.parse(text);
    taken += 1;
  } catch (e) {
    console.log(`${JSON.stringify(text)}: ${e}`);
  }
}
console.log(`taken: ${taken} of ${texts.length}`);
process.exit(taken === texts.length ? 0 : 1);
