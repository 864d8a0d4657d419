/**
 * An agent over the servers of the MCP project, as a process of its own: it runs one turn, prints the output as JSON and then
 * waits to be killed.
 */
import { waymark } from '../../src/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { everything } from './mcp-servers.ts';

const app = waymark({
  store: sqliteStore(process.argv[2] ?? ''),
  model: scriptedModel([{ toolCalls: [{ name: 'everything_trigger-elicitation-request' }] }]),
});
const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [everything()] });
const { sessionId, finishReason } = await agent.run('Go');
console.log(JSON.stringify({ sessionId, finishReason }));
setInterval(() => {}, 60_000);
