/**
 * Tools, resources and prompts of MCP servers for your agents.
 *
 * @module
 */

export type { Resource } from '../generate/resource.ts';
export { type McpSource, mcp } from './mcp.ts';
export type { McpCommand, McpServer, McpUrl } from './options.ts';
