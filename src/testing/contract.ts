/**
 * The conformance suites for stores, engines, agents and workspaces that you write.
 *
 * @module
 */

export { agentContract } from './agent-contract/agent-contract.ts';
export type { ContractAgent, ContractHost, ContractLink } from './agent-contract/stage.ts';
export type { Wish } from './engine-contract/contract-agent.ts';
export {
  type ContractProcess,
  type ContractRuntime,
  startContractProcess,
} from './engine-contract/contract-process.ts';
export { type EngineCluster, engineContract } from './engine-contract/engine-contract.ts';
export type { OpenedStore } from './store-contract/kit.ts';
export { storeContract } from './store-contract/store-contract.ts';
export {
  type OpenedWorkspace,
  workspaceContract,
} from './workspace-contract/workspace-contract.ts';
