import { execFileSync } from 'node:child_process';
import { beforeAll, expect, test } from 'vitest';
import { linkPackage, root, runtimes } from './commands.ts';

beforeAll(linkPackage);

const script = `
const found = [];
const note = (name, target, key) => {
  const real = target[key];
  target[key] = (...args) => { found.push(name); return real.apply(target, args); };
};
note('random bytes', crypto, 'getRandomValues');
note('a random id', crypto, 'randomUUID');
for (const name of ['setTimeout', 'setInterval', 'setImmediate']) note(name, globalThis, name);
note('fetch', globalThis, 'fetch');
const real = globalThis.AbortController;
globalThis.AbortController = class extends real { constructor() { super(); found.push('AbortController'); } };
const { waymark, memoryStore } = await import('waymark');
const { handler } = await import('waymark/server');
const app = waymark({ store: memoryStore(), model: { name: 'm', run: async () => ({}) } });
app.defineAgent({ name: 'chat' });
handler(app);
console.log(JSON.stringify(found));
`;

test('importing the package and defining an app draws no random bytes and starts nothing', () => {
  const args = [...runtimes.node.execArgv, '--input-type=module', '--eval', script];
  const cwd = `${root}/test/runtimes`;
  const printed = execFileSync(runtimes.node.execPath, args, { cwd, encoding: 'utf8' });
  expect(JSON.parse(printed)).toEqual([]);
});
