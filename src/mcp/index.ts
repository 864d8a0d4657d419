export { type McpSource, mcp } from './mcp.ts';
export type { McpCommand, McpHeaders, McpServer, McpUrl } from './options.ts';
