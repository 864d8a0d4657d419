import { createInterface } from 'node:readline';
import type { HandlerOptions } from '../../server/http/handler-options.ts';
import { jsonLines } from '../../server/http/log.ts';
import { loadHandler } from '../serving/load-server.ts';
import { findAgentsFile } from '../source/find-file.ts';
import { loadApp } from '../source/load-app.ts';
import type { Terminal } from '../terminal.ts';

/** The arguments of `waymark mcp`. */
export interface ServeLinesOptions {
  readonly file: string | undefined;
  readonly owner: string | undefined;
  /** The names of the agents to offer. */
  readonly agents: readonly string[] | undefined;
  readonly terminal: Terminal;
}

/** Offers the agents of a file to the MCP client that started this process, until it closes the standard input. */
export async function serveMcpLines(options: ServeLinesOptions): Promise<void> {
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
