/** Sends the requests that docs/http.md shows with curl. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { memoryStore, toolApproval, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const page = readFileSync(resolve(import.meta.dirname, '../../docs/http.md'), 'utf8');
const commands = [...page.matchAll(/```sh\n(curl [\s\S]*?)\n```/g)].map(
  ([, command = '']) => command,
);

/** A curl command of the page as a request to the server at `url`. */
function send(command: string, url: string, names: Readonly<Record<string, string>>) {
  const filled = command
    .replaceAll(/'?\$(\w+)'?/g, (_, name: string) => names[name] ?? '')
    .replace('http://127.0.0.1:3000', url);
  const [, address = ''] = /(http:\S+)/.exec(filled) ?? [];
  const [, body] = /-d '([\s\S]*)'/.exec(filled) ?? [];
  const headers = [...filled.matchAll(/-H '([^:]+): ([^']+)'/g)];
  return fetch(address, {
    method: body !== undefined || filled.includes('-X POST') ? 'POST' : 'GET',
    headers: headers.map(([, name = '', value = '']): [string, string] => [name, value]),
    ...(body !== undefined && { body }),
  });
}

test('every request of the page is accepted and does what the page says', async () => {
  const refunded: number[] = [];
  const app = waymark({
    model: scriptedModel({
      patterns: [
        [
          /refund/,
          () => ({
            toolCalls: [{ name: 'refund', ref: 'call-1', input: { order: 7, euros: 20 } }],
          }),
        ],
      ],
      otherwise: 'Hello.',
    }),
    store: memoryStore(),
  });
  const input = z.object({ order: z.number(), euros: z.number() });
  const refund = app.defineTool(
    { name: 'refund', description: 'Refunds.', input },
    ({ euros }) => void refunded.push(euros),
  );
  const desk = app.defineAgent({ name: 'desk', tools: [refund], use: [toolApproval(['refund'])] });
  const server = await serve(app, { port: 0, log: () => {} });
  let run = '';
  for (const command of commands) {
    const isAnswer = command.includes('"resume"');
    const asked = isAnswer ? await desk.run('Please refund order 7') : undefined;
    const names = { SNAPSHOT: run, SESSION: asked?.sessionId ?? '' };
    const response = await send(command, server.url, names);
    expect([response.status, command]).toEqual([200, command]);
    const text = await response.text();
    if (command.includes('-N')) expect(text).toContain('data: ');
    if (command.includes('"detach"')) run = JSON.parse(text).snapshotId;
    if (isAnswer) expect(JSON.parse(text)).toMatchObject({ finishReason: 'stop' });
    if (command.includes('"ada-1"') && !command.includes('-N')) {
      expect(JSON.parse(text).sessionId).toBe('ada-1');
    }
  }
  expect(commands.length).toBeGreaterThan(9);
  expect(refunded).toEqual([20, 5]);
  const { items } = await desk.listInterrupts();
  expect(items).toEqual([]);
  await server.close();
  await app.close();
});
