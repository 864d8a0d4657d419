/**
 * Remote agents that speak A2A, as tools of your agents.
 *
 * @module
 */

export { a2aAgentTool } from './agent-tool.ts';
export type { A2aAgentToolOptions } from './options.ts';
