/**
 * An agent that calls a tool of an MCP server as a task, as a process of its own. With the id of a run, it waits for that run, and
 * else starts one and prints its id; then it waits to be killed.
 */
import { waymark } from '../../src/index.ts';
import { mcp } from '../../src/mcp/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { sharedClock } from '../support/shared-clock.ts';

const [path = '', clockFile = '', url = '', id] = process.argv.slice(2);
const { clock } = sharedClock(clockFile);
const call = { toolCalls: [{ name: 'remote_expert', input: { message: 'Wait' } }] };
const app = waymark({
  store: sqliteStore(path, { clock }),
  clock,
  claimTtl: 60_000,
  model: scriptedModel({
    patterns: [[/^Go/, call]],
    otherwise: ({ messages }) => JSON.stringify(messages.at(-1)?.content),
  }),
});
const agent = app.defineAgent({
  name: 'lead',
  system: 'Help.',
  tools: [mcp('remote', { url, tasks: true })],
});
await app.ready();
if (id === undefined) console.log(`run ${(await agent.start('Go')).id}`);
else console.log(`text ${(await agent.attach(id).wait()).text}`);
setInterval(() => {}, 60_000);
