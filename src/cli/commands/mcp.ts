import { defineCommand, jsonOption } from '../command.ts';
import { serveMcpLines } from '../mcp/serve-lines.ts';
import { addServer, listServers, testServer } from '../mcp/try-servers.ts';

const subcommands: Readonly<Record<string, typeof addServer>> = {
  add: addServer,
  list: listServers,
  test: testServer,
};

/** `waymark mcp` */
export const mcp = defineCommand({
  name: 'mcp',
  summary: 'Serve agents to an MCP client over standard input and output',
  usage: '[file | add | list | test] [arguments...]',
  about:
    'An MCP client starts this command and talks to it over standard input and output. Each agent is a tool. The log, and\neverything that agents print, goes to standard error. To serve clients on other machines, use "waymark serve" with `mcp:\ntrue` in `serverOptions`.\n\n"add", "list" and "test" are for MCP servers whose tools your agents use. "add" connects to a server and writes it to\nmcp.json, "list" prints the tools of each server, and "test" prints the tools of one server or calls a tool. mcp.json\nhas the format that MCP clients share. The values of --env and --header are written to it.',
  examples: [
    'mcp agents.ts',
    'mcp agents.ts --agent writer --owner ann',
    'mcp add files -- npx -y @modelcontextprotocol/server-filesystem .',
    'mcp add docs https://docs.example.com/mcp --header "authorization: Bearer …"',
    'mcp list',
    `mcp test files read_text_file '{ "path": "README.md" }'`,
  ],
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
      about: 'The owner of the sessions [none]',
    },
    config: {
      type: 'string',
      value: 'file',
      about: 'The file for "add", "list" and "test" [mcp.json]',
    },
    env: {
      type: 'string',
      value: 'name=value',
      multiple: true,
      about: 'An environment variable for the command of "add"; can be repeated',
    },
    header: {
      type: 'string',
      value: 'name:value',
      multiple: true,
      about: 'A header for the URL of "add" and "test"; can be repeated',
    },
    ...jsonOption,
  },
  async run({ args, options, terminal }) {
    const subcommand = subcommands[args[0] ?? ''];
    if (subcommand) {
      const { config, env, header, json } = options;
      return subcommand({ args: args.slice(1), config, env, header, json, terminal });
    }
    await serveMcpLines({
      file: args[0],
      owner: options.owner,
      agents: options.agent,
      terminal,
    });
  },
});
