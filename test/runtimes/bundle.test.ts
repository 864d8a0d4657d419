import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from 'vitest';
import { bundleFor } from './bundle-for.ts';
import { linkPackage } from './commands.ts';

beforeAll(linkPackage);

/** A Worker with one agent, which is as small as an app can be. */
const worker = (imports: string, protocols = '') => `
import { memoryStore, waymark } from 'waymark';
import { handler, ${imports} } from 'waymark/server';
const app = waymark({ store: memoryStore() });
const model = app.defineModel({ name: 'echo' }, async () => ({
  message: { role: 'model', content: [{ text: 'hello' }] },
  finishReason: 'stop',
}));
app.defineAgent({ name: 'chat', model });
const fetch = handler(app, { auth: () => ({ principal: 'ann' }), protocols: [${protocols}] });
export default { fetch: (request) => fetch(request) };
`;

// Texts that only the endpoints of one protocol have.
const marks = {
  mcpProtocol: 'resources/templates/list',
  openAiProtocol: 'response.output_item.added',
  aguiProtocol: 'TEXT_MESSAGE_START',
  a2aProtocol: 'SubscribeToTask',
};

function protocolsIn(bundle: string): string[] {
  return Object.entries(marks).flatMap(([name, mark]) => (bundle.includes(mark) ? [name] : []));
}

test.each([
  [true, 800],
  [false, 1560],
])('a Worker has no protocol that it does not use (minified: %s)', async (minify, most) => {
  const bundle = await bundleFor('workerd', { contents: worker(''), minify });
  expect(protocolsIn(bundle)).toEqual([]);
  const [plain = 0, gzip = 0] = [bundle, gzipSync(bundle)].map(({ length }) => length / 1024);
  // For docs/runtimes.md. The limit is a tenth above what it said when this was written, 15 KiB more for stored files, and 45 more
  // for limits of schemas and streams, reservations, transforms and messages about mistakes. Then 104 for the front matter of skills
  // and 24 for cron, which a Worker cannot load later, and 90 for workspaces, memory, undo and schedules.
  console.log(`${Math.round(plain)} KiB, ${Math.round(gzip)} KiB gzip, minified: ${minify}`);
  expect(plain).toBeLessThan(most);
});

test.each(Object.keys(marks))('a Worker that uses %s has no other protocol', async (name) => {
  const contents = worker(name, `${name}()`);
  expect(protocolsIn(await bundleFor('workerd', { contents }))).toEqual([name]);
});
