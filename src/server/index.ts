export type { Auth, Authorize, AuthorizeCall, Caller, Identity } from './auth.ts';
export { type FetchHandler, handler } from './handler.ts';
export type { CorsOptions, HandlerOptions } from './handler-options.ts';
export type { Limits } from './limits.ts';
export { jsonLines, type Log, type LogEntry } from './log.ts';
export { type RunningServer, type ServeOptions, serve } from './serve.ts';
export type { ServedApp } from './served-app.ts';
