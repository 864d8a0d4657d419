import { type Json, jsonEqual } from '../../core/json/json.ts';
import type { Unknown } from '../compare/compare-turns.ts';
import type { RecordedTurn } from '../recording/recorded-session.ts';

/**
 * What of a prompt agent's turn has an unknown cause: the state changed, and no tool call has a record of it. Only tools change
 * the state of such an agent, so an older version wrote the session.
 */
export function unknownEffects(
  { toolCalls, before, custom, artifacts, parentId }: RecordedTurn,
  initialState: Json | undefined,
): Unknown {
  if (toolCalls.length === 0) return { custom: false, artifacts: false };
  const records = toolCalls.map(({ record }) => record);
  const recordsCustom = records.some((record) => record?.custom !== undefined);
  const recordsArtifacts = records.some((record) => record?.artifacts !== undefined);
  const start = before.custom ?? (parentId === undefined ? initialState : undefined) ?? null;
  return {
    custom: !recordsCustom && !jsonEqual(start, custom ?? null),
    artifacts: !recordsArtifacts && !jsonEqual(asJson(before.artifacts), asJson(artifacts)),
  };
}

function asJson(artifacts: RecordedTurn['artifacts']): Json {
  return artifacts as unknown as Json;
}
