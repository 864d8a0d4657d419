import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';
import { message, part } from './message.ts';

/** Something a session produced: a file, an image, a table. Same name means same artifact, newer version. */
export const artifact = v.object({
  name: v.optional(v.string()),
  parts: v.array(part),
  metadata: v.optional(jsonObject),
});

/**
 * The portable state of a session: plain JSON that a client may hold.
 * `sessionId` rides along so that a client-held state stays one session; `seal` proves that it was not changed.
 */
export const state = v.object({
  sessionId: v.optional(v.string()),
  messages: v.optional(v.array(message)),
  custom: v.optional(jsonValue),
  artifacts: v.optional(v.array(artifact)),
  seal: v.optional(v.string()),
});

export interface Artifact extends v.InferOutput<typeof artifact> {}
export interface State extends v.InferOutput<typeof state> {}
