export type { Resource } from '../generate/prompt/resource.ts';
export { type McpSource, mcp } from './mcp.ts';
export type { McpAuth, McpCommand, McpHeaders, McpServer, McpUrl } from './options.ts';
