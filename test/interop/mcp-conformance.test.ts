import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { startServer } from '../server/kit.ts';

const program = fileURLToPath(
  new URL('./node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
);
const conformance = async (...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [program, ...args])).stdout;

/** The scenarios that a server of agents can be asked. */
const applied = [
  'server-initialize',
  'ping',
  'tools-list',
  'tools-call-error',
  'tools-call-elicitation',
  'server-sse-multiple-streams',
  'resources-list',
  'dns-rebinding-protection',
];

const fixedTool = 'calls a tool that takes no arguments; an agent needs a message';
const fixedResource = 'reads a resource with a URI of its own choice';
const noPrompts = 'prompts are not offered: an agent is called, not copied';

/** All others, with the reason why they cannot apply. */
const left: Readonly<Record<string, string>> = {
  'logging-set-level': 'logging is deprecated by SEP-2577 and not offered',
  'completion-complete': 'completion is for prompts and templates; not offered',
  'tools-call-simple-text': fixedTool,
  'tools-call-image': fixedTool,
  'tools-call-audio': fixedTool,
  'tools-call-embedded-resource': fixedTool,
  'tools-call-mixed-content': fixedTool,
  'tools-call-with-logging': fixedTool,
  'tools-call-with-progress': fixedTool,
  'tools-call-sampling': 'sampling is deprecated by SEP-2577; agents have their own model',
  'json-schema-2020-12': 'asks for one tool with a schema of its own',
  'elicitation-sep1034-defaults': fixedTool,
  'elicitation-sep1330-enums': fixedTool,
  'server-sse-polling': fixedTool,
  'resources-read-text': fixedResource,
  'resources-read-binary': fixedResource,
  'resources-templates-read': fixedResource,
  'resources-subscribe': 'subscriptions are not offered',
  'resources-unsubscribe': 'subscriptions are not offered',
  'prompts-list': noPrompts,
  'prompts-get-simple': noPrompts,
  'prompts-get-with-args': noPrompts,
  'prompts-get-embedded-resource': noPrompts,
  'prompts-get-with-image': noPrompts,
};

let server: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  const model = scriptedModel({
    patterns: [[/^Please provide/, { toolCalls: [{ name: 'contact', input: {} }] }]],
    otherwise: 'Thank you.',
  });
  const app = waymark({ model, store: memoryStore() });
  const text = { type: 'string' };
  const contact = app.defineInterrupt({
    name: 'contact',
    description: 'Asks for the contact of the user',
    output: { type: 'object', properties: { username: text, email: text } },
  });
  app.defineAgent({ name: 'test_elicitation', system: 'Ask.', tools: [contact] });
  app.defineAgent({ name: 'test_error_handling', system: 'Fail.' });
  server = await startServer({ app, mcp: true });
});
afterAll(() => server.close());

describe('the conformance suite', () => {
  test('has no scenario that is neither run nor left out for a reason', async () => {
    const listed = await conformance('list', '--server');
    const names = [...listed.matchAll(/^\s+- (\S+)/gm)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(30);
    expect(names.toSorted()).toEqual([...applied, ...Object.keys(left)].toSorted());
  });

  test.each(applied)('passes %s', async (scenario) => {
    const url = `${server.url}/mcp`;
    const told = await conformance('server', '--url', url, '--scenario', scenario);
    expect(told).toMatch(/Passed: (\d+)\/\1, 0 failed, 0 warnings/);
  });
});
