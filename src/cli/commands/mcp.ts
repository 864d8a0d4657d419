import { createInterface } from 'node:readline';
import type { HandlerOptions } from '../../server/http/handler-options.ts';
import { jsonLines } from '../../server/http/log.ts';
import { defineCommand, jsonOption, option } from '../command.ts';
import { addServer, listServers, testServer } from '../mcp/try-servers.ts';
import { findAgentsFile, loadApp } from '../source/load-app.ts';
import { loadHandler } from '../source/load-server.ts';
import type { Terminal } from '../terminal.ts';

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
    agent: option('name', 'An agent to offer; can be repeated [all agents with a store]', {
      short: 'a',
      multiple: true,
    }),
    owner: option('id', 'The owner of the sessions [none]'),
    config: option('file', 'The file for "add", "list" and "test" [mcp.json]'),
    env: option('name=value', 'An environment variable for the command of "add"; can be repeated', {
      multiple: true,
    }),
    header: option('name:value', 'A header for the URL of "add" and "test"; can be repeated', {
      multiple: true,
    }),
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

/** The arguments of `waymark mcp`. */
interface ServeLinesOptions {
  readonly file: string | undefined;
  readonly owner: string | undefined;
  /** The names of the agents to offer. */
  readonly agents: readonly string[] | undefined;
  readonly terminal: Terminal;
}

/** Offers the agents of a file to the MCP client that started this process, until it closes the standard input. */
async function serveMcpLines(options: ServeLinesOptions): Promise<void> {
  const { file, terminal } = options;
  // The standard output belongs to the protocol: what agents print goes to the standard error.
  for (const name of ['log', 'info', 'debug'] as const) console[name] = console.error;
  const path = findAgentsFile(file, terminal.cwd);
  const stopping = new AbortController();
  const unsubscribe = terminal.onInterrupt(() => {
    stopping.abort();
    terminal.input.destroy();
  });
  const { app, serverOptions } = await loadApp(path, terminal.cwd, 'running');
  try {
    const { handler, serveLines } = await loadHandler();
    const fetch = handler(app, handlerOptions(options, serverOptions));
    await serveLines(fetch, {
      lines: createInterface({ input: terminal.input, crlfDelay: Number.POSITIVE_INFINITY }),
      write: (line) => void terminal.output.write(line),
      signal: stopping.signal,
    });
  } finally {
    unsubscribe();
    await app.close({ grace: 5000 });
  }
}

const log = jsonLines((line) => void process.stderr.write(line));

function handlerOptions(
  { owner, agents }: ServeLinesOptions,
  served: HandlerOptions = {},
): HandlerOptions {
  const { limits, mcp } = served;
  return {
    mcp: { ...(typeof mcp === 'object' && mcp), ...(agents && { agents }) },
    log: (entry) => void (entry.level !== 'info' && log(entry)),
    compress: false,
    reflection: false,
    ...(limits && { limits }),
    // The client is a process of the user who runs this one: there is only one user.
    ...(owner !== undefined && { auth: () => ({ principal: owner }) }),
  };
}
