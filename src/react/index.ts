/**
 * Hooks for React, and the store behind them.
 *
 * @module
 */

export type { IfHead } from '../api/types.ts';
export type { AgentActions, AgentStore, AgentStoreOptions } from './agent-store.ts';
export { createAgentStore } from './create-agent-store.ts';
export type { GivenAnswers, WaitingInterrupt } from './interrupts.ts';
export type { MessageView, ToolCallView } from './message-view.ts';
export { snapshotBefore } from './session-data.ts';
export { type TimelineNode, toTimeline } from './timeline.ts';
export { type UseAgent, useAgent, useAgentStore, useAgentValue } from './use-agent.ts';
export type { AgentView, SubAgentView } from './view.ts';
