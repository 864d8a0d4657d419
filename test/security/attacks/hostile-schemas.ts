import { hostileRequests, hostileSchemas } from '../../support/hostile-schemas.ts';
import { type Attack, ann } from '../attack.ts';

/** How long `/healthz` may have to wait for the event loop, in CPU time, so that a busy machine does not count. */
const healthMs = 250;

/** Schemas of callers and of an MCP server that are costly to evaluate, over each protocol that takes them. */
export const attack: Attack = {
  name: 'hostile schemas',
  setup: { hostileMcp: true },
  // The values that are checked have up to 1 MB. Reading and copying them counts, too.
  limits: { blockedMs: healthMs, blockedP99Ms: healthMs },
  async run({ url, check, note }) {
    let requests = 0;
    let slowest = 0;
    let isOver = false;
    const asking = (async () => {
      while (!isOver) {
        const started = performance.now();
        await (await fetch(`${url}/healthz`)).text();
        slowest = Math.max(slowest, performance.now() - started);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const send = async (what: string, path: string, body: unknown): Promise<void> => {
      requests++;
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { ...ann, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(60_000),
      });
      await response.text();
      check(response.status < 500, `${what} was answered with ${response.status}`);
    };
    for (const [at, hostile] of hostileSchemas.entries()) {
      for (const { way, path, body } of hostileRequests(hostile)) {
        await send(`${hostile.name} in ${way}`, path, body);
      }
      const calls = [`raw_input-${at} ${JSON.stringify(hostile.value)}`, `raw_output-${at} {}`];
      for (const call of calls) {
        const message = { role: 'user', content: [{ text: `call ${call}` }] };
        await send(`${hostile.name} of an MCP server`, '/agents/tooled/turns', {
          input: { message },
        });
      }
    }
    // One message of a model with a hundred calls.
    const self = { $ref: '#/properties/v' };
    const inputSchema = { type: 'object', properties: { v: { anyOf: [self, self] } } };
    const message = { role: 'user', content: [{ text: 'repeat 100 probe {"v":1}' }] };
    await send('a hundred calls', '/agents/chat/turns', {
      input: { message, tools: [{ name: 'probe', inputSchema }] },
    });
    isOver = true;
    await asking;
    note(`slowest answer of healthz: ${slowest.toFixed(0)} ms`);
    return requests;
  },
};
