import { createInterface } from 'node:readline';
import { defined } from '../../core/json/json.ts';
import { jsonLines } from '../../server/http/log.ts';
import { defineCommand, option } from '../command.ts';
import { addServer, listServers, testServer, tryOptions } from '../mcp/try-servers.ts';
import { ownOutput } from '../own-output.ts';
import { loadApp } from '../source/load-app.ts';
import { orExplain } from '../source/load-server.ts';
import type { Terminal } from '../terminal.ts';

const subcommands = new Map<string | undefined, typeof addServer>([
  ['add', addServer],
  ['list', listServers],
  ['test', testServer],
]);

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
    ...tryOptions,
  },
  async run({ args, options, terminal }) {
    const [first, ...rest] = args;
    const subcommand = subcommands.get(first);
    if (subcommand) return await subcommand({ args: rest, options, terminal });
    return await serveLines(first, options, terminal);
  },
});

/** Offers the agents of a file to the MCP client that started this process, until it closes the standard input. */
async function serveLines(
  file: string | undefined,
  { agent: agents, owner }: { readonly agent?: readonly string[]; readonly owner?: string },
  { cwd, input, output, onInterrupt }: Terminal,
): Promise<void> {
  const { write, release } = ownOutput(output);
  const stopping = new AbortController();
  const unsubscribe = onInterrupt(() => {
    stopping.abort();
    input.destroy();
  });
  const { app, serverOptions } = await loadApp(file, cwd, 'running');
  const { limits, mcp } = serverOptions;
  const log = jsonLines((line) => void process.stderr.write(line));
  try {
    const [{ handler }, stdio] = await orExplain(() =>
      Promise.all([import('../../server/handler.ts'), import('../../server/mcp/stdio.ts')]),
    );
    const fetch = handler(app, {
      ...defined({ limits }),
      mcp: { ...(typeof mcp === 'object' && mcp), ...defined({ agents }) },
      log: (entry) => void (entry.level !== 'info' && log(entry)),
      compress: false,
      reflection: false,
      // The client is a process of the user who runs this one: there is only one user.
      ...(owner !== undefined && { auth: () => ({ principal: owner }) }),
    });
    await stdio.serveLines(fetch, {
      lines: createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }),
      write: (line) => void write(line).catch(() => stopping.abort()),
      signal: stopping.signal,
    });
  } finally {
    unsubscribe();
    await app.close({ grace: 5000 });
    release();
  }
}
