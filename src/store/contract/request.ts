import type { Json } from '../../core/json/json.ts';

/** How long a request id is remembered after the end of its run, in milliseconds: 24 hours. */
export const requestTtl = 86_400_000;

/** An idempotency key that a run is claimed under. Both are SHA-256 in lower-case hex. */
export interface RequestMark {
  /** Of owner, agent and the caller's request id; unique in the store. */
  readonly key: string;
  /** Of what was asked for, to tell a retry from another request under the same id. */
  readonly digest: string;
}

/** What a store knows of a request. */
export interface RequestRecord {
  /** The id of the run. */
  readonly runId: string;
  /** The session. */
  readonly sessionId: string;
  /** What the run came to; absent while it is open, and when it ended without its worker. */
  readonly receipt?: Json;
}

/** What a run came to, for those who ask again under its keys. Kept for {@link requestTtl}. */
export interface RequestOutcome {
  /** The idempotency keys that the run answers. */
  readonly keys: readonly string[];
  /** What a repeated request gets. */
  readonly receipt: Json;
}
