/**
 * The HTTP server, its protocols, and handlers for web frameworks.
 *
 * @module
 */

export type { Operation } from '../protocol/routes.ts';
export { a2aProtocol } from './a2a/mount.ts';
export { aguiProtocol } from './agui/mount.ts';
export type { FetchHandler } from './create-fetch.ts';
export { handler } from './handler.ts';
export type { Auth, AuthorizeCall, Caller } from './http/auth.ts';
export type {
  A2aServerOptions,
  AguiServerOptions,
  HandlerOptions,
  McpServerOptions,
  OpenAiServerOptions,
  ServerProtocol,
} from './http/handler-options.ts';
export type { ServerLimits } from './http/limits.ts';
export { jsonLines, type Log, type LogEntry } from './http/log.ts';
export type { ServedApp } from './http/served-app.ts';
export { mcpProtocol } from './mcp/mount.ts';
export { openAiProtocol } from './openai/mount.ts';
export { type RunningServer, type ServeOptions, serve } from './serve.ts';
