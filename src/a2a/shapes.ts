import * as v from 'valibot';
import { jsonObject, jsonValue } from '../protocol/json-value.ts';

const agentInterface = v.object({
  url: v.string(),
  protocolBinding: v.optional(v.string()),
  transport: v.optional(v.string()),
  protocolVersion: v.optional(v.string()),
});

/** The fields of a card that a client needs, of both generations. */
export const agentCard = v.object({
  supportedInterfaces: v.nullish(v.array(agentInterface)),
  url: v.nullish(v.string()),
  preferredTransport: v.nullish(v.string()),
  additionalInterfaces: v.nullish(v.array(agentInterface)),
  capabilities: v.nullish(v.object({ streaming: v.nullish(v.boolean()) })),
});
export interface AgentCard extends v.InferOutput<typeof agentCard> {}

/** A part of both generations. */
const part = v.object({
  text: v.nullish(v.string()),
  data: v.optional(jsonValue),
  raw: v.nullish(v.string()),
  url: v.nullish(v.string()),
  mediaType: v.nullish(v.string()),
  file: v.nullish(
    v.object({
      bytes: v.nullish(v.string()),
      uri: v.nullish(v.string()),
      mimeType: v.nullish(v.string()),
    }),
  ),
});
export interface RemotePart extends v.InferOutput<typeof part> {}

const message = v.object({ role: v.nullish(v.string()), parts: v.nullish(v.array(part)) });
export interface RemoteMessage extends v.InferOutput<typeof message> {}

const artifact = v.object({ parts: v.nullish(v.array(part)) });

/** A task of both generations. */
const task = v.object({
  id: v.pipe(v.string(), v.minLength(1), v.maxLength(1_024)),
  contextId: v.nullish(v.pipe(v.string(), v.maxLength(1_024))),
  status: v.object({ state: v.string(), message: v.nullish(message) }),
  artifacts: v.nullish(v.array(artifact)),
  history: v.nullish(v.array(message)),
});
export interface RemoteTask extends v.InferOutput<typeof task> {}

/** The reply to a message: `{ task }` or `{ message }` in 1.0, either of them with its `kind` in 0.3. */
export const sent = v.union([
  v.pipe(
    v.object({ task }),
    v.transform((given) => given.task),
  ),
  task,
  v.pipe(
    v.object({ message }),
    v.transform((given) => given.message),
  ),
  message,
]);

export { task as remoteTask };

export const rpcResponse = v.object({
  result: v.optional(v.unknown()),
  error: v.optional(v.object({ code: v.number(), message: v.string() })),
});

/** The pieces of text in an event of a stream. */
export const streamEvent = v.object({
  artifactUpdate: v.optional(v.object({ artifact })),
  artifact: v.optional(artifact),
});

/** The questions of a Waymark agent, in the status of its task. */
export const questions = v.object({
  questions: v.array(v.object({ key: v.string(), message: v.string(), schema: jsonObject })),
});
export type RemoteQuestion = v.InferOutput<typeof questions>['questions'][number];
