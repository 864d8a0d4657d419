import type { Interrupt } from '../api/interrupts.ts';
import type { Json, JsonObject } from '../core/json/json.ts';
import type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { reasoningOf, requestKey, textOf } from '../protocol/messages.ts';

/** A file of a message or of a tool's answer. */
interface FileView {
  /** Its address, or a `data:` URL. */
  readonly url: string;
  /** The media type, if it is known. */
  readonly contentType: string | undefined;
}

/**
 * The status of a tool call. `running`: the turn waits for it. `waiting`: for the answer of a person, see `interrupt`.
 * `stopped`: the turn ended before the tool did.
 */
type ToolCallStatus = 'running' | 'waiting' | 'done' | 'failed' | 'declined' | 'stopped';

/** A tool call with its answer. */
export interface ToolCallView {
  /** Distinguishes the calls of one message. */
  readonly key: string;
  /** The name of the tool. */
  readonly name: string;
  /** The input from the model. */
  readonly input: Json | undefined;
  /** The output: so far while the tool runs, and the text of the error if it failed. */
  readonly output: Json | undefined;
  /** The status of the call. */
  readonly status: ToolCallStatus;
  /** Files in the tool's answer. */
  readonly files: readonly FileView[];
  /** There while the call waits: `resume(interrupt.approve())` answers it. */
  readonly interrupt?: Interrupt;
}

/** A message as a page renders it. The answers of tools are part of the message that called them. */
export interface MessageView {
  /** Its position in the conversation: a stable key for a list, and what `resend` takes. It is `transcript[index - earlier]`. */
  readonly index: number;
  /** Who wrote it. */
  readonly role: 'system' | 'user' | 'model';
  /** The text. */
  readonly text: string;
  /** The reasoning before the answer. */
  readonly reasoning: string;
  /** Files in the message. */
  readonly files: readonly FileView[];
  /** The tool calls, with their answers. */
  readonly toolCalls: readonly ToolCallView[];
  /** The metadata of the stored message. */
  readonly metadata: JsonObject | undefined;
}

/** The facts about the tool calls at the end of a conversation that only the view knows. */
export interface OpenCalls {
  readonly running: boolean;
  readonly interrupts: readonly Interrupt[];
}

interface Entry {
  readonly sources: readonly Message[];
  readonly open: OpenCalls | undefined;
  readonly view: MessageView | undefined;
}

/** Turns a transcript into what a page renders. What has not changed since the last time stays the same object. */
export class MessageViews {
  #entries: readonly Entry[] = [];
  #views: readonly MessageView[] = [];

  /** `first` is the position of the first message of the transcript. */
  of(transcript: readonly Message[], open: OpenCalls, first = 0): readonly MessageView[] {
    const entries: Entry[] = [];
    for (let from = 0; from < transcript.length; ) {
      let to = from + 1;
      while (transcript[to]?.role === 'tool') to++;
      const before = this.#entries[entries.length];
      const isLast = to === transcript.length;
      const sources = transcript.slice(from, to);
      entries.push(entryOf(first + from, sources, isLast ? open : closed, before));
      from = to;
    }
    this.#entries = entries;
    const views = entries.flatMap(({ view }) => (view ? [view] : []));
    const isSame = (view: MessageView, at: number): boolean => view === this.#views[at];
    if (views.length !== this.#views.length || !views.every(isSame)) this.#views = views;
    return this.#views;
  }
}

const closed: OpenCalls = { running: false, interrupts: [] };
const noFiles: readonly FileView[] = [];
const noCalls: readonly ToolCallView[] = [];

function entryOf(
  from: number,
  sources: readonly Message[],
  given: OpenCalls,
  before: Entry | undefined,
): Entry {
  const hasCalls = sources.some(({ content }) => content.some(isToolPart));
  const open = hasCalls ? given : undefined;
  if (before && isUnchanged(before, sources, open) && (before.view?.index ?? from) === from)
    return before;
  return { sources, open, view: toView(from, sources, open) };
}

function isUnchanged(before: Entry, sources: readonly Message[], open?: OpenCalls): boolean {
  return (
    before.sources.length === sources.length &&
    sources.every((source, at) => source === before.sources[at]) &&
    before.open?.running === open?.running &&
    before.open?.interrupts === open?.interrupts
  );
}

function toView(
  index: number,
  sources: readonly Message[],
  open: OpenCalls | undefined,
): MessageView | undefined {
  const [first] = sources;
  if (!first) return undefined;
  const text = textOf(first);
  const reasoning = reasoningOf(first);
  const files = filesOf(first.content);
  const toolCalls = open ? toolCallsOf(sources, open) : noCalls;
  // Nothing that a page could show: its row would be empty.
  if (text === '' && reasoning === '' && files.length === 0 && toolCalls.length === 0)
    return undefined;
  // The last message of a turn names its snapshot.
  const { metadata } = sources.at(-1) ?? first;
  const role = first.role === 'tool' ? 'model' : first.role;
  return { index, role, text, reasoning, files, toolCalls, metadata };
}

function toolCallsOf(sources: readonly Message[], open: OpenCalls): readonly ToolCallView[] {
  const calls = new Map<string, { request?: ToolRequestPart; response?: ToolResponsePart }>();
  for (const part of sources.flatMap(({ content }) => content)) {
    if ('toolRequest' in part) {
      const key = requestKey(part.toolRequest);
      calls.set(key, { ...calls.get(key), request: part });
    } else if ('toolResponse' in part) {
      const key = requestKey(part.toolResponse);
      calls.set(key, { ...calls.get(key), response: part });
    }
  }
  return Array.from(calls, ([key, { request, response }]) => {
    const interrupt = open.interrupts.find((each) => each.key === key);
    const { name = '' } = request?.toolRequest ?? response?.toolResponse ?? {};
    // The result of a call whose sibling waits is kept with the request.
    const kept = request?.metadata;
    return {
      key,
      name,
      input: request?.toolRequest.input,
      output: response ? response.toolResponse.output : (kept?.pendingOutput as Json | undefined),
      status: interrupt ? 'waiting' : statusOf(response, kept, open.running),
      files: filesOf(
        (response?.toolResponse.content ?? []) as readonly unknown[] as readonly Part[],
      ),
      ...(interrupt && { interrupt }),
    };
  });
}

function statusOf(
  response: ToolResponsePart | undefined,
  kept: JsonObject | undefined,
  running: boolean,
): ToolCallStatus {
  const metadata = response ? response.metadata : kept;
  const isAnswered = response ? metadata?.partial !== true : kept?.pendingOutput !== undefined;
  if (!isAnswered) return running ? 'running' : 'stopped';
  const error = metadata?.error;
  if (error === undefined) return 'done';
  const reason = typeof error === 'object' && error && 'reason' in error ? error.reason : undefined;
  return reason === 'declined' ? 'declined' : reason === 'aborted' ? 'stopped' : 'failed';
}

function filesOf(content: readonly Part[]): readonly FileView[] {
  const files = content.flatMap((part) =>
    'media' in part && part.metadata?.reasoning !== true
      ? [{ url: part.media.url, contentType: part.media.contentType }]
      : [],
  );
  return files.length === 0 ? noFiles : files;
}

function isToolPart(part: Part): boolean {
  return 'toolRequest' in part || 'toolResponse' in part;
}
