import type { FetchLike, Transport } from '@modelcontextprotocol/client';
import { boundResponse } from '../core/bound-response.ts';
import { defined } from '../core/json/json.ts';
import { loadSdk, loadStdio } from './client.ts';
import type { McpCommand, McpServer, McpUrl } from './options.ts';

export interface OpenTransport {
  readonly transport: Transport;
  /** The last text that the process wrote to its standard error. */
  lastOutput(): string;
  onConnected(): void;
  onClosed(): void;
  /** Ends a process that may not listen. */
  kill(): void;
}

export const defaultMaxMessageBytes: number = 10 * 1024 * 1024;

/** A new transport; nothing is started before it is connected. `onTooLong` is called for a message that is too long. */
export function openTransport(
  options: McpServer,
  user: string | undefined,
  onTooLong: () => Error,
): Promise<OpenTransport> {
  return 'command' in options ? openProcess(options) : openHttp(options, user, onTooLong);
}

async function openProcess(options: McpCommand): Promise<OpenTransport> {
  const { command, args = [], env, cwd, maxMessageBytes = defaultMaxMessageBytes } = options;
  const { StdioClientTransport } = await loadStdio();
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    ...defined({ env: env && (defined(env) as Record<string, string>), cwd }),
    stderr: 'pipe',
    maxBufferSize: maxMessageBytes,
  });
  let output = '';
  transport.stderr?.on('data', (chunk: Uint8Array) => {
    output = (output + new TextDecoder().decode(chunk)).slice(-maxOutputLength);
  });
  let pid: number | undefined;
  return {
    transport,
    lastOutput: () => output.trim(),
    onConnected() {
      pid = transport.pid ?? undefined;
      if (pid !== undefined) endWithThisProcess(pid);
    },
    onClosed() {
      if (pid !== undefined) forget(pid);
      pid = undefined;
    },
    kill() {
      if (pid !== undefined) end(pid, 'SIGKILL');
    },
  };
}

const maxOutputLength = 2_000;

// A server should end when its standard input does, which also happens after `kill -9`. This ends the others as well.
const processes = new Set<number>();

function endProcesses(): void {
  for (const pid of processes) end(pid, 'SIGTERM');
}

function end(pid: number, signal: NodeJS.Signals): void {
  try {
    globalThis.process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

function endWithThisProcess(pid: number): void {
  if (processes.size === 0) globalThis.process.once('exit', endProcesses);
  processes.add(pid);
}

function forget(pid: number): void {
  processes.delete(pid);
  if (processes.size === 0) globalThis.process.off('exit', endProcesses);
}

async function openHttp(
  options: McpUrl,
  user: string | undefined,
  onTooLong: () => Error,
): Promise<OpenTransport> {
  const { StreamableHTTPClientTransport } = await loadSdk();
  const auth = typeof options.auth === 'function' ? await options.auth(user) : options.auth;
  const transport = new StreamableHTTPClientTransport(new URL(options.url), {
    fetch: fetchOf(options, user, onTooLong),
    ...(auth && { authProvider: auth }),
  });
  return { transport, lastOutput: () => '', onConnected() {}, onClosed() {}, kill() {} };
}

function fetchOf(options: McpUrl, user: string | undefined, onTooLong: () => Error): FetchLike {
  const { headers, maxMessageBytes = defaultMaxMessageBytes } = options;
  const { origin } = new URL(options.url);
  return async (url, init) => {
    const request = options.fetch ?? fetch;
    // The transport also speaks to authorization servers, which must not see these headers.
    const isServer = new URL(url).origin === origin;
    const own = isServer
      ? await (typeof headers === 'function' ? headers(user) : headers)
      : undefined;
    const all = new Headers(init?.headers);
    for (const [key, value] of Object.entries(own ?? {})) all.set(key, value);
    const response = await request(url, { ...init, headers: all });
    return boundResponse(response, maxMessageBytes, onTooLong);
  };
}
