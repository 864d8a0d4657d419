import { WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { MediaPart, Message, Part, ToolResponsePart } from '../../protocol/message.ts';
import { providerMetadataKey, textOf } from '../../protocol/messages.ts';
import { toFileData } from './content.ts';
import type {
  PromptMessage,
  PromptPart,
  ProviderOptions,
  SpecificationVersion,
  ToolOutput,
  ToolOutputContent,
} from './types.ts';

/** Messages as an AI SDK model takes them. */
export function toPrompt(
  messages: readonly Message[],
  version: SpecificationVersion,
): PromptMessage[] {
  const prompt: PromptMessage[] = [];
  for (const message of messages) {
    const { role } = message;
    if (role === 'system') {
      // It goes out as one text, so what is said of its last part is said of all of it, as for a cache.
      const options =
        providerOptions(message.content.at(-1)?.metadata) ?? providerOptions(message.metadata);
      prompt.push({ role, content: textOf(message), ...options });
      continue;
    }
    const content = toPromptParts(message, version);
    // Providers refuse a message that says nothing.
    if (content.length === 0) continue;
    const last = prompt.at(-1);
    if (role === 'tool' && last?.role === 'tool') {
      // Results that came in one after the other answer one message of the model; providers want them together.
      prompt[prompt.length - 1] = { ...last, content: [...last.content, ...content] };
      continue;
    }
    prompt.push({
      role: role === 'model' ? 'assistant' : role,
      content,
      ...providerOptions(message.metadata),
    });
  }
  return prompt;
}

function toPromptParts({ role, content }: Message, version: SpecificationVersion): PromptPart[] {
  const parts: PromptPart[] = [];
  for (const part of content) {
    // A tool message names the requests that were interrupted again; the model knows them already.
    if (role === 'tool' && !('toolResponse' in part)) continue;
    const converted = toPromptPart(part, version);
    if (converted) parts.push(converted);
  }
  return parts;
}

function toPromptPart(part: Part, version: SpecificationVersion): PromptPart | undefined {
  const options = providerOptions(part.metadata);
  if ('text' in part) {
    // Providers refuse empty texts, but a signature may ride on one.
    if (part.text === '' && !options) return undefined;
    return { type: 'text', text: part.text, ...options };
  }
  if ('reasoning' in part) return { type: 'reasoning', text: part.reasoning, ...options };
  if ('media' in part) {
    const type = part.metadata?.reasoning === true && version === 'v4' ? 'reasoning-file' : 'file';
    return { type, ...toFileData(part, version), ...options };
  }
  if ('toolRequest' in part) {
    const { name, ref, input } = part.toolRequest;
    return {
      type: 'tool-call',
      toolCallId: ref ?? name,
      toolName: name,
      input: input ?? {},
      ...(part.metadata?.providerExecuted === true && { providerExecuted: true }),
      ...options,
    };
  }
  if ('toolResponse' in part) return toToolResult(part, version, options);
  if ('data' in part) return { type: 'text', text: JSON.stringify(part.data), ...options };
  if ('resource' in part) {
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no content for resource "${part.resource.uri}": name it in \`resources\`.`,
    );
  }
  const { kind } = part.custom;
  // Other custom parts, such as the sources of an answer, are for the reader and not for the model.
  return typeof kind === 'string' && version === 'v4'
    ? { type: 'custom', kind, ...options }
    : undefined;
}

function toToolResult(
  part: ToolResponsePart,
  version: SpecificationVersion,
  options: { readonly providerOptions: ProviderOptions } | undefined,
): PromptPart {
  const { name, ref } = part.toolResponse;
  return {
    type: 'tool-result',
    toolCallId: ref ?? name,
    toolName: name,
    output: toToolOutput(part, version),
    ...options,
  };
}

function providerOptions(
  metadata: JsonObject | undefined,
): { readonly providerOptions: ProviderOptions } | undefined {
  const options = metadata?.[providerMetadataKey];
  // Only the adapter writes this key, with what a provider gave it.
  return options === undefined ? undefined : { providerOptions: options as ProviderOptions };
}

/** The answer of a tool as an AI SDK model takes it. */
function toToolOutput(
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
