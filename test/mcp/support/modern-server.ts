/** A server of the protocol of 2026, with the SDK, that asks questions, has resources and prompts, and counts what it does. */
import { appendFileSync } from 'node:fs';
import { inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const journal = process.argv[2];
const text = (value: string): { content: [{ type: 'text'; text: string }] } => ({
  content: [{ type: 'text', text: value }],
});

serveStdio(() => {
  const server = new McpServer({ name: 'modern', version: '1' });
  server.registerTool(
    'deploy',
    { inputSchema: z.object({ env: z.string() }), annotations: { destructiveHint: true } },
    ({ env }, ctx) => {
      const { confirm, reason } = (ctx.mcpReq.inputResponses ?? {}) as Record<
        string,
        { action: string; content?: Record<string, unknown> } | undefined
      >;
      if (!confirm || !reason) {
        return inputRequired({
          inputRequests: {
            confirm: inputRequired.elicit({
              message: `Deploy to ${env}?`,
              requestedSchema: z.object({ sure: z.boolean() }),
            }),
            reason: inputRequired.elicit({
              message: 'Why?',
              requestedSchema: z.object({ why: z.string() }),
            }),
          },
          requestState: `state of ${env}`,
        });
      }
      if (journal) appendFileSync(journal, `deployed ${env}\n`);
      return text(JSON.stringify([env, confirm, reason, ctx.mcpReq.requestState()]));
    },
  );
  server.registerTool(
    'measure',
    { inputSchema: z.object({}), outputSchema: z.object({ size: z.string() }) },
    (_, ctx) => {
      const { size } = (ctx.mcpReq.inputResponses ?? {}) as Record<
        string,
        { content?: { size: string } } | undefined
      >;
      if (size) {
        return { ...text('measured'), structuredContent: { size: String(size.content?.size) } };
      }
      const message = 'How much?';
      const requestedSchema = z.object({ size: z.string() });
      return inputRequired({
        inputRequests: { size: inputRequired.elicit({ message, requestedSchema }) },
      });
    },
  );
  server.registerResource(
    'page',
    new ResourceTemplate('docs://{page}', { list: undefined }),
    {},
    (uri) => ({ contents: [{ uri: uri.href, text: `The text of ${uri.host}` }] }),
  );
  server.registerPrompt('greet', { argsSchema: z.object({ name: z.string() }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }],
  }));
  return server;
});
