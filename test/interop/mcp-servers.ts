import { fileURLToPath } from 'node:url';
import { type McpSource, mcp } from '../../src/mcp/index.ts';

/** The script of a server of the MCP project. */
export function scriptOf(name: string): string {
  const path = `./node_modules/@modelcontextprotocol/${name}/dist/index.js`;
  return fileURLToPath(new URL(path, import.meta.url));
}

/** The server that has something of everything. */
export function everything(): McpSource {
  return mcp('everything', { command: process.execPath, args: [scriptOf('server-everything')] });
}

/** The server for the files of a folder. */
export function files(folder: string): McpSource {
  return mcp('files', { command: process.execPath, args: [scriptOf('server-filesystem'), folder] });
}
