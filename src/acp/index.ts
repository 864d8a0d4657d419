/**
 * Coding agents of other vendors, which speak the Agent Client Protocol, as agents of your app.
 *
 * @module
 */

export { acpAgent } from './agent.ts';
export type { AcpAgentOptions } from './options.ts';
