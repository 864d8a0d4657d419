import { toJsonSchemaDefs } from '@valibot/to-json-schema';
import { clientFrame } from '../../src/protocol/frames.ts';
import {
  memoryEntry,
  memoryHistory,
  memoryOfTurn,
  memoryPage,
  memoryWrite,
} from '../../src/protocol/memory.ts';
import { message, part } from '../../src/protocol/message.ts';
import {
  abortResult,
  agentInfo,
  agentList,
  deadRunList,
  diff,
  editRequest,
  filePage,
  forkRequest,
  restoreRequest,
  retryResult,
  runList,
  sessionChange,
  sessionPage,
  skillInfo,
  snapshotChange,
  snapshotPage,
  steerRequest,
  steerResult,
  toolInfo,
  turnRequest,
  undoRequest,
  usageReport,
  waitingPage,
  waitingSession,
} from '../../src/protocol/requests.ts';
import { deadRun, run } from '../../src/protocol/run.ts';
import { session } from '../../src/protocol/session.ts';
import { snapshot } from '../../src/protocol/snapshot.ts';
import { artifact, state } from '../../src/protocol/state.ts';
import { chunk, errorBody, init, input, output } from '../../src/protocol/turn.ts';
import { plannedEffect, undoPlan } from '../../src/protocol/undo.ts';

/** The schemas of the wire as JSON Schema, by the names that the OpenAPI document gives them. */
export function generateSchemas(): Record<string, object> {
  const definitions = {
    Part: part,
    Message: message,
    Artifact: artifact,
    State: state,
    Error: errorBody,
    Init: init,
    Input: input,
    Chunk: chunk,
    Output: output,
    Snapshot: snapshot,
    SnapshotPage: snapshotPage,
    SnapshotChange: snapshotChange,
    Session: session,
    SessionPage: sessionPage,
    SessionChange: sessionChange,
    Diff: diff,
    FilePage: filePage,
    TurnRequest: turnRequest,
    EditRequest: editRequest,
    ForkRequest: forkRequest,
    RestoreRequest: restoreRequest,
    UndoRequest: undoRequest,
    PlannedEffect: plannedEffect,
    UndoPlan: undoPlan,
    MemoryEntry: memoryEntry,
    MemoryPage: memoryPage,
    MemoryHistory: memoryHistory,
    MemoryOfTurn: memoryOfTurn,
    MemoryWrite: memoryWrite,
    AbortResult: abortResult,
    Run: run,
    RunList: runList,
    DeadRun: deadRun,
    DeadRunList: deadRunList,
    RetryResult: retryResult,
    UsageReport: usageReport,
    SteerRequest: steerRequest,
    SteerResult: steerResult,
    WaitingSession: waitingSession,
    WaitingPage: waitingPage,
    SkillInfo: skillInfo,
    ToolInfo: toolInfo,
    AgentInfo: agentInfo,
    AgentList: agentList,
    ClientFrame: clientFrame,
  };
  const schemas = toJsonSchemaDefs(definitions, {
    target: 'draft-2020-12',
    typeMode: 'input',
    errorMode: 'throw',
    overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
    // The one custom check in protocol/ is that of a JSON object with any keys.
    overrideSchema: ({ valibotSchema }) =>
      valibotSchema.type === 'custom' ? { type: 'object' } : undefined,
  });
  return JSON.parse(JSON.stringify(schemas));
}
