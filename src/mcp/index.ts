export type { Resource } from '../generate/prompt/resource.ts';
export { type McpSource, mcp } from './mcp.ts';
export type { McpCommand, McpServer, McpUrl } from './options.ts';
