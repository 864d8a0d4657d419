import * as v from 'valibot';
import { jsonValue } from './json-value.ts';
import type { Message, Part, ToolRequestPart, ToolResponsePart } from './message.ts';
import { withoutKey } from './messages.ts';
import { artifact } from './state.ts';
import { patchOperation } from './turn.ts';

/** An artifact that a tool call left: as a whole while it is small, else by its content hash in the session's states. */
const artifactRef = v.union([
  v.object({ artifact }),
  v.object({ name: v.optional(v.string()), hash: v.string() }),
]);

const madeCall = {
  /** The idempotency key of the call. */
  key: v.string(),
  /** When it began. */
  at: v.string(),
};

const toolRecord = v.object({
  /** The call may have had an effect in another system. */
  call: v.optional(v.object(madeCall)),
  /** Such calls of sub-agents inside it. */
  calls: v.optional(
    v.array(
      v.object({
        ...madeCall,
        tool: v.string(),
        agent: v.optional(v.string()),
        input: v.optional(jsonValue),
      }),
    ),
  ),
  /** The change of the custom state. */
  custom: v.optional(v.array(patchOperation)),
  /** The artifacts that were added; with `set`, they replaced all others. */
  artifacts: v.optional(v.object({ set: v.optional(v.boolean()), items: v.array(artifactRef) })),
  /** The tool changed the messages itself, which is not recorded. */
  messages: v.optional(v.boolean()),
  /** The place of its first change among those of the same round, where the calls changed the session in another order. */
  order: v.optional(v.number()),
  /** The value that the call was restarted with. */
  resumed: v.optional(jsonValue),
  /** The edited input of a restart. */
  input: v.optional(jsonValue),
});

/**
 * The effects of a tool call on its session and elsewhere, and how it was restarted after an interrupt. They are stored with the response, so that
 * a replay can answer the call the same way without running the tool.
 */
export interface ToolRecord extends v.InferOutput<typeof toolRecord> {}
export type ArtifactRef = v.InferOutput<typeof artifactRef>;

/** The name in the metadata of a tool response, or of the request that it waits in. */
const recordName = 'recorded';

export function withRecord<P extends ToolRequestPart | ToolResponsePart>(
  part: P,
  record: ToolRecord | undefined,
): P {
  if (record === undefined) return part;
  return { ...part, metadata: { ...part.metadata, [recordName]: record } };
}

/** The record of a tool call; `undefined` if it had no effect, or was not recorded. */
export function recordOf({ metadata }: Pick<Part, 'metadata'>): ToolRecord | undefined {
  const found = metadata?.[recordName];
  if (found === undefined) return undefined;
  const parsed = v.safeParse(toolRecord, found);
  return parsed.success ? parsed.output : undefined;
}

/** A part without the record of its call, as it is shown outside. */
export function withoutRecord<P extends Part>(part: P): P {
  return withoutKey(part, recordName);
}

export function withoutRecords(messages: readonly Message[]): Message[] {
  return messages.map((message) =>
    message.content.some((part) => part.metadata?.[recordName] !== undefined)
      ? { ...message, content: message.content.map(withoutRecord) }
      : message,
  );
}
