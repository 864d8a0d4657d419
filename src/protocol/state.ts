import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';
import { message, part } from './message.ts';

export const artifact = v.object({
  /** The name: a new artifact replaces the one of the same name. */
  name: v.optional(v.string()),
  /** The content. */
  parts: v.array(part),
  /** Further facts as JSON. */
  metadata: v.optional(jsonObject),
});

export const state = v.object({
  /** The session, so that a client-held state stays one session. */
  sessionId: v.optional(v.string()),
  /** The messages of the active branch. */
  messages: v.optional(v.array(message)),
  /** Your own state, typed by the agent's schema. */
  custom: v.optional(jsonValue),
  /** The artifacts of the session. */
  artifacts: v.optional(v.array(artifact)),
  /** A signature: proves that the client did not change the state. */
  seal: v.optional(v.string()),
});

/** Something that a session produced: a file, an image, a table. */
export interface Artifact extends v.InferOutput<typeof artifact> {}
/** The state of a session: plain JSON that a client can hold. */
export interface State extends v.InferOutput<typeof state> {}

/** Which messages of a state were read: those from position `from` on, of `total`. Apart from `message-page.ts`, which clients load. */
export const messageRange = v.object({ from: v.number(), total: v.number() });
