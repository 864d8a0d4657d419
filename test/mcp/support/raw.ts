import { fileURLToPath } from 'node:url';
import { type McpCommand, type McpSource, mcp } from '../../../src/mcp/index.ts';

const script = fileURLToPath(new URL('./raw-server.ts', import.meta.url));

/** The raw server as a tool source. */
export function rawServer(
  name: string,
  behaviour = '',
  options: Partial<McpCommand> = {},
): McpSource {
  return mcp(name, { command: process.execPath, args: [script, behaviour], ...options });
}
