export { a2aAgentTool } from './agent-tool.ts';
export type { A2aAgentToolOptions } from './options.ts';
