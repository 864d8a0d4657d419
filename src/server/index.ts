export { type FetchHandler, handler } from './handler.ts';
export type { Auth, Authorize, AuthorizeCall, Caller, Identity } from './http/auth.ts';
export type { CorsOptions, HandlerOptions, McpServerOptions } from './http/handler-options.ts';
export type { ServerLimits } from './http/limits.ts';
export { jsonLines, type Log, type LogEntry } from './http/log.ts';
export type { ServedApp } from './http/served-app.ts';
export { type RunningServer, type ServeOptions, serve } from './serve.ts';
