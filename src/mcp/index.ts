export type { Resource } from '../generate/resource.ts';
export { type McpSource, mcp } from './mcp.ts';
export type { McpAuth, McpCommand, McpHeaders, McpServer, McpUrl } from './options.ts';
