export { a2aAgentTool } from './agent-tool.ts';
export type { A2aAgentToolOptions, A2aHeaders } from './options.ts';
