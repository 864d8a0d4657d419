export { type App, type AppOptions, type ToolExtras, waymark } from './app.ts';
export { isWaymarkError, type Status, WaymarkError } from './core/error.ts';
export { memoryStore } from './session/memory-store/memory-store.ts';
export { currentSession } from './session/session.ts';
