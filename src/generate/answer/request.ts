import { failedPrecondition, invalid } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { lastToolRound, openToolRequests, type Summary } from '../../protocol/messages.ts';
import type { GenerateOptions } from '../generate-options.ts';
import type { ModelRequest } from '../model.ts';
import { instructionsOf, type ResolvedOutput } from '../output/output.ts';
import { type Resource, withResources } from '../resource.ts';
import { systemMessage, toParts, userMessage } from '../template.ts';
import type { Tool } from '../tool/tool.ts';
import { compactMessages, type HistoryScope } from './history.ts';

/** The parts of a generate call that the messages of a request depend on. */
export interface RequestScope extends HistoryScope {
  readonly output: ResolvedOutput;
  readonly resources: readonly Resource[];
  readonly compaction: Compaction;
}

/** How the conversation of a call is compacted. */
export interface Compaction {
  /** The provider has refused the request as too long. */
  isForced: boolean;
  /** A summary that no message carries yet. */
  made: Summary | undefined;
}

/** The messages a model sees first: system, what stands before, the selected conversation, what stands behind it. */
export function baseMessages(
  options: GenerateOptions,
  scope: RequestScope,
): readonly Message[] | Promise<readonly Message[]> {
  const { messages = [], history, compact } = options;
  const isPlain = history === undefined && compact === undefined && scope.resources.length === 0;
  return isPlain ? framed(messages, options, scope) : selectedMessages(options, scope);
}

async function selectedMessages(
  options: GenerateOptions,
  scope: RequestScope,
): Promise<readonly Message[]> {
  const { messages = [], history, compact } = options;
  const { compaction } = scope;
  let compacted = messages;
  if (compact) {
    const shown = await compactMessages(messages, compact, scope, compaction.isForced);
    // A new summary is stored with the answer.
    if (shown.made !== undefined) compaction.made = shown.made;
    compacted = shown.messages;
  }
  const selected = history ? await history(compacted, scope) : compacted;
  return await withResources(framed(selected, options, scope), scope.resources, scope.signal);
}

/** A conversation with what stands around it. */
function framed(
  selected: readonly Message[],
  options: GenerateOptions,
  scope: RequestScope,
): readonly Message[] {
  const { before = [], after = [], docs = [], prompt } = options;
  const conversation = prompt === undefined ? selected : [...selected, userMessage(prompt)];
  const base = before.concat(withAfter(conversation, after));
  if (base.length === 0 && options.system === undefined) {
    throw invalid('There is nothing to answer: pass `prompt` or `messages`.');
  }
  return withDocs(withSystem(base, options, scope), docs);
}

/** Throws unless a model can answer the conversation, or `resume` continues it. */
export function checkConversation({ messages = [], prompt, resume }: GenerateOptions): void {
  if (resume) {
    if (prompt === undefined) return;
    throw invalid('Pass `prompt` or `resume`, not both.');
  }
  const [open] = openToolRequests(messages);
  if (!open) return;
  throw failedPrecondition(
    `The conversation ends with an open request of tool "${open.toolRequest.name}". Pass \`resume\`, or close it with \`closeToolRequests\` first.`,
  );
}

/** The parts of a request that stay the same from one model call to the next. */
export function requestSettings(
  { config, toolChoice }: GenerateOptions,
  tools: ReadonlyMap<string, Tool>,
  { format, jsonSchema }: ResolvedOutput,
): Omit<ModelRequest, 'messages'> {
  return {
    tools: tools.size === 0 ? noTools : [...tools.values()].map(({ definition }) => definition),
    ...defined({ toolChoice, config, output: format.request(jsonSchema) }),
  };
}

/** The settings once tools have run: a model that must ask for a tool each time would never come to its answer. */
export function withoutForcedTool(
  settings: Omit<ModelRequest, 'messages'>,
): Omit<ModelRequest, 'messages'> {
  const { toolChoice, ...rest } = settings;
  return toolChoice === 'required' || typeof toolChoice === 'object' ? rest : settings;
}

const noTools: ModelRequest['tools'] = [];

// Messages after the conversation keep their place while an answer continues: behind the user's message, not between
// a tool request and its result.
function withAfter(
  conversation: readonly Message[],
  after: readonly Message[],
): readonly Message[] {
  if (after.length === 0) return conversation;
  const end = lastToolRound(conversation) ? lastUser(conversation) + 1 : conversation.length;
  return [...conversation.slice(0, end), ...after, ...conversation.slice(end)];
}

function withSystem(
  messages: readonly Message[],
  { system }: GenerateOptions,
  { output, model }: RequestScope,
): readonly Message[] {
  const told = system === undefined ? messages : [systemMessage(system), ...messages];
  const instructions = instructionsOf(output, model.constrainsOutput ?? false);
  if (instructions === undefined) return told;
  const [first, ...rest] = told;
  if (first?.role !== 'system') return [systemMessage(instructions), ...told];
  return [{ ...first, content: [...first.content, ...toParts(`\n\n${instructions}`)] }, ...rest];
}

function withDocs(
  messages: readonly Message[],
  docs: NonNullable<GenerateOptions['docs']>,
): readonly Message[] {
  if (docs.length === 0) return messages;
  const parts = documentParts(docs);
  const at = lastUser(messages);
  const message = messages[at];
  if (!message) return [...messages, userMessage(parts)];
  return messages.with(at, { ...message, content: [...message.content, ...parts] });
}

function lastUser(messages: readonly Message[]): number {
  return messages.findLastIndex(({ role }) => role === 'user');
}

/** Documents as parts, numbered so that an answer can refer to them. */
function documentParts(docs: NonNullable<GenerateOptions['docs']>): Part[] {
  const parts: Part[] = [{ text: '\n\nUse these documents where they help:' }];
  for (const [index, doc] of docs.entries()) {
    const { content, metadata } = typeof doc === 'string' ? { content: doc } : doc;
    const title = typeof metadata?.title === 'string' ? ` ${metadata.title}` : '';
    parts.push({ text: `\n\n[${index + 1}]${title}\n` }, ...toParts(content));
  }
  return parts;
}
