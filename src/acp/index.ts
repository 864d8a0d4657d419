export { acpAgent } from './agent.ts';
export type { AcpAgentOptions } from './options.ts';
