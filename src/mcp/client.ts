import type { Client, ElicitRequest, ElicitResult } from '@modelcontextprotocol/client';
import { failedPrecondition } from '../core/error.ts';
import { tasksExtension } from './incoming.ts';

type Sdk = typeof import('@modelcontextprotocol/client');
type Stdio = typeof import('@modelcontextprotocol/client/stdio');

/** The client package of MCP, loaded when the first server is connected. */
export function loadSdk(): Promise<Sdk> {
  return orExplain(import('@modelcontextprotocol/client'));
}

export function loadStdio(): Promise<Stdio> {
  return orExplain(import('@modelcontextprotocol/client/stdio'));
}

async function orExplain<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (cause) {
    throw failedPrecondition(
      'MCP servers need the package @modelcontextprotocol/client: install it with `npm install @modelcontextprotocol/client`.',
      { cause },
    );
  }
}

/** For results that are parsed here: the client package does not know the methods of extensions, and of tasks one generation only. */
export const anyResult = {
  '~standard': {
    version: 1 as const,
    vendor: 'waymark',
    validate: (value: unknown): { value: unknown } => ({ value }),
  },
};

// Some servers from before 2026 never answer the probe.
const probeTimeoutMs = 10_000;

export interface ClientEvents {
  onToolsChanged(): void;
  onQuestion(params: ElicitRequest['params']): Promise<ElicitResult>;
}

/** A client that offers what agents can do: no sampling, roots or logging. */
export async function createClient(
  { connectTimeout, tasks }: { readonly connectTimeout: number; readonly tasks: boolean },
  events: ClientEvents,
): Promise<Client> {
  const { Client } = await loadSdk();
  const client = new Client(
    { name: 'waymark', version: '1' },
    {
      capabilities: {
        elicitation: { form: {} },
        ...(tasks && { extensions: { [tasksExtension]: {} } }),
      },
      versionNegotiation: {
        mode: 'auto',
        probe: { timeoutMs: Math.min(probeTimeoutMs, connectTimeout / 2) },
      },
      // Questions become interrupts.
      inputRequired: { autoFulfill: false },
      listChanged: {
        tools: { autoRefresh: false, debounceMs: 0, onChanged: () => events.onToolsChanged() },
      },
      // Results are checked in call-tool.ts, with a limit on the work that a server's schema makes.
      jsonSchemaValidator: {
        getValidator: () => (value) => ({
          valid: true,
          data: value as never,
          errorMessage: undefined,
        }),
      },
    },
  );
  client.setRequestHandler('elicitation/create', ({ params }) => events.onQuestion(params));
  return client;
}
