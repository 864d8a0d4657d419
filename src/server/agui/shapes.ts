import * as v from 'valibot';
import type { ToolRequest } from '../../protocol/message.ts';

const text = v.optional(v.nullable(v.string()));

/** A part of a user's message or of a tool's result. `binary` is the form of 0.x clients. */
const contentPart = v.looseObject({
  type: v.string(),
  text,
  source: v.optional(v.looseObject({ type: v.string(), value: v.string(), mimeType: text })),
  mimeType: text,
  url: text,
  data: text,
});

/** A posted message; of the fields of each role, only those that say something to an agent are checked. */
const aguiMessage = v.looseObject({
  id: v.string(),
  role: v.string(),
  content: v.optional(
    v.nullable(v.union([v.string(), v.array(contentPart), v.record(v.string(), v.unknown())])),
  ),
  toolCallId: text,
  error: text,
});

const aguiTool = v.looseObject({
  name: v.string(),
  description: text,
  parameters: v.optional(v.unknown()),
});

const resumeEntry = v.looseObject({
  interruptId: v.string(),
  status: v.picklist(['resolved', 'cancelled']),
  payload: v.optional(v.unknown()),
});

/** The longest id of a run: it is stored with the user's message. */
const maxRunId = 256;

/** What a client posts to run an agent (`RunAgentInput`), of protocol 1.0 and of 0.x. */
export const runRequest = v.object({
  threadId: v.pipe(v.string(), v.minLength(1)),
  runId: v.pipe(v.string(), v.minLength(1), v.maxLength(maxRunId)),
  parentRunId: text,
  /** Absent: a client from before 1.0. */
  protocolVersion: text,
  messages: v.array(aguiMessage),
  tools: v.optional(v.nullable(v.array(aguiTool))),
  context: v.optional(
    v.nullable(v.array(v.looseObject({ description: text, value: v.optional(v.unknown()) }))),
  ),
  resume: v.optional(v.nullable(v.array(resumeEntry))),
});

export type RunRequest = v.InferOutput<typeof runRequest>;
export type PostedMessage = v.InferOutput<typeof aguiMessage>;
export type PostedPart = v.InferOutput<typeof contentPart>;
export type ResumeEntry = v.InferOutput<typeof resumeEntry>;

/** The version that this server speaks. */
export const protocolVersion = '1.0';

/** One event of a stream. */
export type AguiEvent = { readonly type: string; readonly [field: string]: unknown };

/** A message of a `MESSAGES_SNAPSHOT`. */
export type AguiMessage = {
  readonly id: string;
  readonly role: string;
  readonly [field: string]: unknown;
};

/** The id under which a client knows a tool call. */
export function toolCallId({ name, ref = name }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return ref;
}

/** What this protocol adds to a user's message: the client's id of it, and of the run that it started. */
export interface MessageMark {
  readonly id?: string;
  readonly runId?: string;
}
