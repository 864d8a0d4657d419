import { contentHash } from '../core/json/hash.ts';
import {
  type Defined,
  defined,
  isJsonArray,
  isJsonObject,
  type Json,
  type JsonObject,
  toJson,
} from '../core/json/json.ts';
import { fileHashOf, withoutTree } from '../protocol/artifacts.ts';
import type { Message, Part } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import { recordOf, type ToolRecord, withRecord } from '../protocol/tool-record.ts';
import { type SessionExport, toSessionExport } from '../session/export-session.ts';
import { fromSessionExport } from '../session/import-session.ts';
import { fromPlainState, hashState } from '../session/session-state.ts';

/** Gets every text of a session: of messages, tool calls, state and artifacts. The same text must give the same result. */
type RedactText = (text: string) => string;

/**
 * A copy of an exported session in which every text went through a function, for fixtures without personal data. What belongs
 * together stays together, also what tool calls did to the state, so that the copy replays like the original.
 *
 * @example
 * const fixture = await redactExport(document, (text) => text.replace(/[\w.]+@[\w.]+/g, 'ada@example.com'));
 */
export async function redactExport(
  document: SessionExport,
  transform: RedactText,
): Promise<SessionExport> {
  const { session, snapshots } = fromSessionExport(document);
  const redact = redactor(transform);
  const rows = snapshots.map(({ snapshot, totals, state }) => {
    const redacted = fromPlainState({
      messages: state.history.toArray().map(redact.message),
      ...redact.fields({ custom: state.custom }),
      artifacts: withoutTree(state.artifacts).map(redact.artifact),
    });
    const { error, label } = snapshot;
    return {
      snapshot: {
        ...snapshot,
        ...(error && { error: { status: error.status, message: transform(error.message) } }),
        ...redact.fields({ label }),
        stateHash: hashState(redacted),
        sessionId: session.sessionId,
        orphaned: false,
      },
      totals,
      state: redacted,
    };
  });
  const { title, metadata, ...info } = session;
  return await toSessionExport({ ...info, ...redact.fields({ title, metadata }) }, rows);
}

function redactor(transform: RedactText) {
  const hashes = new Map<string, string>();
  const value = (given: Json): Json => {
    if (typeof given === 'string') return transform(given);
    if (isJsonArray(given)) return given.map(value);
    if (!isJsonObject(given)) return given;
    return Object.fromEntries(
      Object.entries(given).map(([key, each]) => [key, value(each ?? null)]),
    );
  };
  /** The fields that are there, redacted. Texts stay texts, and objects keep their keys. */
  const fields = <Fields extends object>(given: Fields): Defined<Fields> =>
    value(defined(given) as JsonObject) as Defined<Fields>;
  /** Everything but the names that hold a conversation together. */
  const content = (part: Part): Part => {
    if ('toolRequest' in part) {
      const { input, ...names } = part.toolRequest;
      return { toolRequest: { ...names, ...fields({ input }) } };
    }
    if ('toolResponse' in part) {
      const { output, content: attached, ...names } = part.toolResponse;
      return { toolResponse: { ...names, ...fields({ output, content: attached }) } };
    }
    // The copy has no files: what they say cannot be redacted.
    if (fileHashOf(part) !== undefined) return { media: { url: 'data:,' } };
    return value(part as unknown as Json) as unknown as Part;
  };
  const part = (given: Part): Part => {
    const { metadata, ...bare } = given;
    const { recorded: _, ...rest } = metadata ?? {};
    const changed = {
      ...content(bare as Part),
      ...(Object.keys(rest).length > 0 && { metadata: value(rest) }),
    } as Part;
    const kept = recordOf(given);
    if (kept === undefined || !('toolResponse' in changed || 'toolRequest' in changed))
      return changed;
    return withRecord(changed, record(kept));
  };
  const artifact = (given: Artifact): Artifact => {
    const { name, parts, metadata } = given;
    const changed = { ...defined({ name }), parts: parts.map(part), ...fields({ metadata }) };
    hashes.set(hashOf(given), hashOf(changed));
    return changed;
  };
  const record = ({ custom, artifacts, resumed, input, ...rest }: ToolRecord): ToolRecord => ({
    ...rest,
    ...(custom && {
      custom: custom.map((each) => ({ ...each, ...fields({ value: each.value }) })),
    }),
    ...(artifacts && {
      artifacts: {
        ...artifacts,
        items: artifacts.items.map((ref) =>
          'artifact' in ref
            ? { artifact: artifact(ref.artifact) }
            : { ...ref, hash: hashes.get(ref.hash) ?? ref.hash },
        ),
      },
    }),
    ...fields({ resumed, input }),
  });
  const message = ({ role, content: parts, metadata }: Message): Message => ({
    role,
    content: parts.map(part),
    ...fields({ metadata }),
  });
  return { fields, artifact, message };
}

function hashOf(artifact: Artifact): string {
  return contentHash(toJson(artifact, 'artifact'));
}
