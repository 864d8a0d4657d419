import { WaymarkError } from '../core/error.ts';

type Sdk = typeof import('@modelcontextprotocol/client');
type Stdio = typeof import('@modelcontextprotocol/client/stdio');

/** The client package of MCP, loaded when the first server is connected. */
export function loadSdk(): Promise<Sdk> {
  return orExplain(import('@modelcontextprotocol/client'));
}

/** Its part for servers that run as processes. */
export function loadStdio(): Promise<Stdio> {
  return orExplain(import('@modelcontextprotocol/client/stdio'));
}

async function orExplain<T>(loading: Promise<T>): Promise<T> {
  try {
    return await loading;
  } catch (cause) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'MCP servers need the package @modelcontextprotocol/client: install it with `npm install @modelcontextprotocol/client`.',
      { cause },
    );
  }
}
