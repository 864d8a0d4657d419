import type { JsonObject } from '../../core/json/json.ts';
import type { MediaPart, ToolResponsePart } from '../../protocol/message.ts';
import { toFileData } from './file-data.ts';
import type { SpecificationVersion, ToolOutput, ToolOutputContent } from './types.ts';

/** The answer of a tool as an AI SDK model takes it. */
export function toToolOutput(
  { toolResponse, metadata }: ToolResponsePart,
  version: SpecificationVersion,
): ToolOutput {
  const { output = null, content } = toolResponse;
  const isError = metadata?.error !== undefined;
  if (content && content.length > 0 && !isError) {
    const value = content.flatMap((part) => toContent(part, version) ?? []);
    if (output !== null) value.unshift({ type: 'text', text: textOfJson(output) });
    return { type: 'content', value };
  }
  if (typeof output === 'string') return { type: isError ? 'error-text' : 'text', value: output };
  return { type: isError ? 'error-json' : 'json', value: output };
}

function toContent(part: JsonObject, version: SpecificationVersion): ToolOutputContent | undefined {
  if (typeof part.text === 'string') return { type: 'text', text: part.text };
  if (isMedia(part)) return toFileContent(part, version);
  return 'data' in part ? { type: 'text', text: textOfJson(part.data) } : undefined;
}

function toFileContent(part: MediaPart, version: SpecificationVersion): ToolOutputContent {
  const { data, mediaType } = toFileData(part, version);
  if (version === 'v4') return { type: 'file', data, mediaType };
  if (typeof data === 'string') {
    return { type: version === 'v3' ? 'file-data' : 'media', data, mediaType };
  }
  // v2 has no way to say where a file is; the model gets the address to read.
  return version === 'v3'
    ? { type: 'file-url', url: part.media.url }
    : { type: 'text', text: part.media.url };
}

// The content of a tool response is plain JSON on the wire; only what looks like media is taken for media.
function isMedia(part: object): part is MediaPart {
  return (
    'media' in part &&
    typeof part.media === 'object' &&
    part.media !== null &&
    'url' in part.media &&
    typeof part.media.url === 'string'
  );
}

function textOfJson(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
