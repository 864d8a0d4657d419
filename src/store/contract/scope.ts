/**
 * Whose data. Ids live under (owner, agent): another agent's or another owner's id is simply unknown. Snapshot ids are
 * UUIDs, unique over the whole store; session ids are the callers' and unique within a scope. See ids.ts.
 */
export interface Scope {
  readonly agent: string;
  readonly owner?: string;
}
