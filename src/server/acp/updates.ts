import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type {
  ContentBlock,
  PlanEntry,
  SessionUpdate,
  ToolCallContent,
  ToolCallLocation,
  ToolKind,
} from '@agentclientprotocol/sdk';
import { toBlock } from '../../acp/messages.ts';
import { isJsonObject, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Message, Part, ToolRequest, ToolResponsePart } from '../../protocol/message.ts';
import type { Chunk } from '../../protocol/turn.ts';

/** The longest text of one tool result. */
const maxResultLength = 64 * 1024;
/** A larger file is written without showing what it contained before. */
const maxDiffBytes = 1024 * 1024;

/** Tells a client what an agent does, as updates of an ACP session. */
export class Updates {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  /** The folder that relative paths are in. */
  root: string;
  readonly #calls = new Map<
    string,
    {
      readonly id: string;
      readonly command: string | undefined;
      readonly path: string | undefined;
    }
  >();
  readonly #used = new Set<string>();
  /** The last change of each file in the running turn: a tool may be faster than the update about its call. */
  readonly #diffs = new Map<string, ToolCallContent>();

  constructor(root: string, send: (update: SessionUpdate) => Promise<void>) {
    this.root = root;
    this.#send = send;
  }

  async text(text: string): Promise<void> {
    if (text !== '') await this.#say('agent_message_chunk', { type: 'text', text });
  }

  async chunk(chunk: Chunk): Promise<void> {
    const { modelChunk, status, steered, agent, agentRef = agent } = chunk;
    if (chunk.turnStart) this.#diffs.clear();
    const plan = planIn(status);
    if (plan) await this.#send({ sessionUpdate: 'plan', entries: plan });
    if (steered) await this.message(steered);
    for (const part of modelChunk?.content ?? []) {
      // The client shows the calls of a sub-agent; its text is the result of one.
      if (agent === undefined) await this.#part(part, 'agent_message_chunk', true);
      else if ('toolRequest' in part) await this.#started(part.toolRequest, { agentRef, agent });
      else if ('toolResponse' in part) await this.#answered(part, agentRef);
    }
  }

  /** Replays a stored message. */
  async message({ role, content }: Message): Promise<void> {
    if (role === 'system') return;
    const as = role === 'user' ? 'user_message_chunk' : 'agent_message_chunk';
    for (const part of content) await this.#part(part, as, false);
  }

  /** The id of a call for the client. Models may use a `ref` again in a later turn. */
  idOf({ name, ref = name }: Pick<ToolRequest, 'name' | 'ref'>): string {
    return this.#calls.get(ref)?.id ?? ref;
  }

  /** Shows a terminal in the running call that has started this command. */
  async terminal(command: string, terminalId: string): Promise<void> {
    for (const call of this.#calls.values()) {
      if (call.command !== command) continue;
      await this.#send({
        sessionUpdate: 'tool_call_update',
        toolCallId: call.id,
        content: [{ type: 'terminal', terminalId }],
      });
      return;
    }
  }

  /** Shows what a running call has changed. */
  async changed(path: string, oldText: string | null, newText: string): Promise<void> {
    const diff = { type: 'diff', path, oldText, newText } as const;
    this.#diffs.set(path, diff);
    for (const { id, path: about } of this.#calls.values()) {
      if (about !== path) continue;
      await this.#send({ sessionUpdate: 'tool_call_update', toolCallId: id, content: [diff] });
    }
  }

  async #part(
    part: Part,
    as: 'agent_message_chunk' | 'user_message_chunk',
    isLive: boolean,
  ): Promise<void> {
    if ('toolRequest' in part) return await this.#started(part.toolRequest, { isLive });
    if ('toolResponse' in part) return await this.#answered(part);
    if ('reasoning' in part) {
      if (part.reasoning === '') return;
      return await this.#say('agent_thought_chunk', { type: 'text', text: part.reasoning });
    }
    const block = toBlock(part);
    if (block) await this.#say(as, block);
  }

  async #say(
    sessionUpdate: 'agent_message_chunk' | 'user_message_chunk' | 'agent_thought_chunk',
    content: ContentBlock,
  ): Promise<void> {
    await this.#send({ sessionUpdate, content });
  }

  async #started(
    request: ToolRequest,
    {
      agentRef = '',
      agent,
      isLive = false,
    }: {
      readonly agentRef?: string | undefined;
      readonly agent?: string;
      readonly isLive?: boolean;
    },
  ): Promise<void> {
    const ref = key(request, agentRef);
    // A call that is shown already, and whose input was still incomplete.
    const known = this.#calls.get(ref);
    const id = known?.id ?? this.#newId(ref);
    const { input } = request;
    const command =
      isJsonObject(input) && typeof input.command === 'string' ? input.command : undefined;
    const plan = planIn(input);
    if (plan) await this.#send({ sessionUpdate: 'plan', entries: plan });
    const facts = await this.factsOf(request);
    const path = facts.locations?.[0]?.path;
    this.#calls.set(ref, { id, command, path });
    const diff = isLive && path !== undefined ? this.#diffs.get(path) : undefined;
    const title = agent === undefined ? facts.title : `${agent}: ${facts.title}`;
    const call = {
      ...facts,
      title,
      toolCallId: id,
      status: 'in_progress' as const,
      // Changes of a running call are sent when they happen.
      ...(isLive && { content: diff ? [diff] : [] }),
    };
    await this.#send(
      known
        ? { sessionUpdate: 'tool_call_update', ...call }
        : { sessionUpdate: 'tool_call', ...call },
    );
  }

  /** Title, kind, locations and diff of a call. With `isAsked`, it has not run, and the diff says what it would change. */
  async factsOf({ name, input }: ToolRequest, isAsked = false): Promise<ToolCallFacts> {
    const { path: given, find, replace, content, ...fields } = isJsonObject(input) ? input : {};
    const path = typeof given === 'string' ? resolve(this.root, given) : undefined;
    const isEdit = typeof find === 'string' && typeof replace === 'string';
    const facts = {
      title: titleOf(name, { ...fields, ...(given !== undefined && { path: given }) }),
      name,
      kind: kindOf(name),
      rawInput: input ?? {},
      ...(path !== undefined && { locations: [locationOf(path, fields)] }),
    };
    if (path === undefined || !(isEdit || typeof content === 'string')) return facts;
    const texts = isEdit
      ? { oldText: find, newText: replace }
      : { oldText: isAsked ? await textOf(path) : null, newText: String(content) };
    return { ...facts, content: [{ type: 'diff', path, ...texts }] };
  }

  async #answered(part: ToolResponsePart, agentRef = ''): Promise<void> {
    const { toolResponse, metadata } = part;
    const ref = key(toolResponse, agentRef);
    const call = this.#calls.get(ref);
    const isPartial = metadata?.partial === true;
    const { output = null } = toolResponse;
    const text = typeof output === 'string' ? output : JSON.stringify(output, null, 2);
    await this.#send({
      sessionUpdate: 'tool_call_update',
      toolCallId: call?.id ?? ref,
      status: isPartial ? 'in_progress' : metadata?.error === undefined ? 'completed' : 'failed',
      // The result of a file tool says less than its diff.
      ...(metadata?.error === undefined && /^(write|edit)$/.test(toolResponse.name)
        ? {}
        : { content: [{ type: 'content', content: { type: 'text', text: cut(text) } }] }),
      rawOutput: output,
    });
    if (!isPartial) this.#calls.delete(ref);
  }

  #newId(ref: string): string {
    let id = ref;
    for (let count = 2; this.#used.has(id); count++) id = `${ref}#${count}`;
    this.#used.add(id);
    return id;
  }
}

/** The part of a tool call that a client shows. */
export interface ToolCallFacts {
  readonly title: string;
  readonly name: string;
  readonly kind: ToolKind;
  readonly rawInput: unknown;
  readonly locations?: ToolCallLocation[];
  readonly content?: ToolCallContent[];
}

function key({ name, ref = name }: Pick<ToolRequest, 'name' | 'ref'>, agentRef: string): string {
  return agentRef === '' ? ref : `${agentRef}/${ref}`;
}

function cut(text: string): string {
  return text.length > maxResultLength ? `${text.slice(0, maxResultLength)}…` : text;
}

function locationOf(path: string, { from }: JsonObject): ToolCallLocation {
  return typeof from === 'number' && Number.isInteger(from) && from > 0
    ? { path, line: from }
    : { path };
}

async function textOf(path: string): Promise<string | null> {
  try {
    const stats = await stat(path);
    // Reading a pipe or a device may never end.
    if (!stats.isFile() || stats.size > maxDiffBytes) return null;
    return await readFile(path, 'utf8');
  } catch {
    return null;
  }
}

const kinds: readonly (readonly [RegExp, ToolKind])[] = [
  [/shell|bash|exec|command|terminal/, 'execute'],
  [/search|find|grep|list|glob/, 'search'],
  [/delete|remove/, 'delete'],
  [/move|rename/, 'move'],
  [/write|edit|patch|create_file/, 'edit'],
  [/fetch|browse|http|download/, 'fetch'],
  [/read|open|view|load|get/, 'read'],
  [/think|plan/, 'think'],
];

function kindOf(name: string): ToolKind {
  return kinds.find(([pattern]) => pattern.test(name.toLowerCase()))?.[1] ?? 'other';
}

function titleOf(name: string, { command, path, pattern }: JsonObject): string {
  const about = [command, path, pattern].find((each) => typeof each === 'string');
  return (about === undefined ? name : `${name} ${about}`).slice(0, 300);
}

const states = { pending: 'pending', in_progress: 'in_progress', completed: 'completed' } as const;
const priorities = { high: 'high', medium: 'medium', low: 'low' } as const;

/** A plan in a status of an agent, or in the input of a tool: `{ plan: [{ content, status }] }`. */
function planIn(value: Json | undefined): PlanEntry[] | undefined {
  if (!isJsonObject(value) || !Array.isArray(value.plan)) return undefined;
  const entries = value.plan.flatMap((entry: Json): PlanEntry[] => {
    if (!isJsonObject(entry) || typeof entry.content !== 'string') return [];
    const { content, status, priority } = entry;
    return [
      {
        content,
        status: states[status as keyof typeof states] ?? 'pending',
        priority: priorities[priority as keyof typeof priorities] ?? 'medium',
      },
    ];
  });
  return entries.length > 0 ? entries : undefined;
}

/** A prompt of a client as the message of a user. */
export function toMessage(blocks: readonly ContentBlock[]): Message {
  return { role: 'user', content: blocks.map(toPart) };
}

function toPart(block: ContentBlock): Part {
  switch (block.type) {
    case 'text':
      return { text: block.text };
    case 'image':
    case 'audio': {
      const { mimeType, data } = block;
      return { media: { url: `data:${mimeType};base64,${data}`, contentType: mimeType } };
    }
    case 'resource_link':
      return { text: `[${block.name}](${block.uri})` };
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return { text: `${resource.uri}\n\n${resource.text}` };
      const { mimeType = 'application/octet-stream', blob } = resource;
      const type = mimeType ?? 'application/octet-stream';
      return { media: { url: `data:${type};base64,${blob}`, contentType: type } };
    }
  }
}
