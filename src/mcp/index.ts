export { type McpSource, mcp } from './mcp.ts';
export type { McpCommand, McpHeaders, McpOptions, McpUrl } from './options.ts';
