import type { Agent } from '../../agent/contract/agent.ts';
import type { ErrorBody } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { MediaPart, Part } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Output } from '../../protocol/turn.ts';
import type { Fields } from '../http/json-rpc.ts';
import { artifactUri } from './uri.ts';

/** The result of a tool call: the answer of a turn for the model, and its place in the session for the client. */
export function toolResult(
  agent: Agent,
  output: Output,
  { links }: { readonly links: boolean },
): Fields {
  const { sessionId, snapshotId, finishReason, message, error, artifacts = [] } = output;
  const text = textOf(message);
  const hasFailed = finishReason === 'failed';
  const place = { sessionId, snapshotId, finishReason };
  const structuredContent = { ...place, output: answer(output, text) };
  return {
    content: [
      ...(hasFailed ? [textBlock(failureText(error))] : []),
      ...(text === '' && hasFailed ? [] : [textBlock(text)]),
      ...(message?.content ?? []).flatMap(mediaBlock),
      ...(links && snapshotId !== undefined
        ? artifacts.flatMap((artifact) => linkBlock(agent, snapshotId, artifact))
        : []),
      placeBlock(output),
    ],
    ...(hasFailed ? { isError: true } : { structuredContent }),
  };
}

/** A refusal that the calling model can read, and do better the next time. */
export function errorResult({ status, message }: ErrorBody): Fields {
  return { content: [textBlock(message)], isError: true, _meta: { 'waymark/status': status } };
}

export function wordsResult(words: string, output: Output): Fields {
  const { sessionId, snapshotId, finishReason } = output;
  return {
    content: [textBlock(words), placeBlock(output)],
    structuredContent: { sessionId, snapshotId, finishReason },
  };
}

function answer({ output, finishReason }: Output, text: string): Json | undefined {
  if (output !== undefined) return output;
  return finishReason === 'interrupted' || text === '' ? undefined : text;
}

function failureText(error: Output['error']): string {
  return `The turn failed: ${error?.message ?? 'the reason is not known.'}`;
}

function textBlock(text: string): Fields {
  return { type: 'text', text };
}

// Many clients give their model the content only: without the id it could not continue the conversation.
function placeBlock({ sessionId }: Output): Fields {
  return {
    type: 'text',
    text: `sessionId: ${sessionId} (pass it to continue this conversation)`,
    annotations: { audience: ['assistant'] },
  };
}

function mediaBlock(part: Part): Fields[] {
  const media = 'media' in part ? inlineMedia(part.media) : undefined;
  if (!media) return [];
  const { data, mimeType } = media;
  if (mimeType.startsWith('image/')) return [{ type: 'image', data, mimeType }];
  if (mimeType.startsWith('audio/')) return [{ type: 'audio', data, mimeType }];
  return [];
}

/** The bytes of a `data:` URL, in base64. */
export function inlineMedia({ url, contentType }: MediaPart['media']) {
  const [, type, data] =
    /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=-]+)*;base64,([\w+/=]*)$/.exec(url) ?? [];
  if (data === undefined) return undefined;
  return { data, mimeType: contentType ?? type ?? 'application/octet-stream' };
}

function linkBlock({ name: agent }: Agent, snapshotId: string, { name }: Artifact): Fields[] {
  if (name === undefined) return [];
  return [{ type: 'resource_link', uri: artifactUri({ agent, snapshotId, artifact: name }), name }];
}
