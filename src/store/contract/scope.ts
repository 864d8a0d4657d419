/**
 * Whose data. Ids live under (owner, agent): another agent's or another owner's id is simply unknown. Snapshot ids are
 * UUIDs, unique over the whole store; session ids are the callers' and unique within a scope. See ids.ts.
 */
export interface Scope {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner; without it, sessions that have none. */
  readonly owner?: string;
}
