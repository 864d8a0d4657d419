import { defineCommand } from '../command.ts';
import { serveMcpLines } from '../mcp/serve-lines.ts';

/** `waymark mcp` */
export const mcp = defineCommand({
  name: 'mcp',
  summary: 'Offer agents to an MCP client over standard input and output',
  usage: '[file]',
  about:
    'The MCP client starts this command and talks to it over standard input and output; what agents print and the log go to\nthe standard error. Each agent is a tool. To serve clients of other machines, use "waymark serve" with `mcp: true` in\n`serverOptions`.',
  examples: ['mcp agents.ts', 'mcp agents.ts --agent writer --owner ann'],
  options: {
    agent: {
      type: 'string',
      short: 'a',
      value: 'name',
      multiple: true,
      about: 'An agent to offer; can be repeated [all agents with a store]',
    },
    owner: {
      type: 'string',
      value: 'id',
      about: 'The owner of the sessions, where your server has auth [none]',
    },
  },
  async run({ args, options, terminal }) {
    await serveMcpLines({
      file: args[0],
      owner: options.owner,
      agents: options.agent,
      terminal,
    });
  },
});
