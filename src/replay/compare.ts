import { diffJson } from '../core/json/diff.ts';
import { isJsonArray, isJsonObject, type Json, jsonEqual } from '../core/json/json.ts';
import { parsePointer } from '../core/json/pointer.ts';
import type { Message, Part } from '../protocol/message.ts';
import { textOf } from '../protocol/messages.ts';
import type { Artifact } from '../protocol/state.ts';
import type { Cost } from '../protocol/turn.ts';
import type { TurnSide } from './recorded-session.ts';
import type { ToolCall } from './tool-calls.ts';

/** The kind of a difference. `tokens`, `cost` and `time` count only with a tolerance. */
type DivergenceKind =
  | 'toolCall'
  | 'toolResult'
  | 'custom'
  | 'artifact'
  | 'text'
  | 'content'
  | 'finishReason'
  | 'model'
  | 'tokens'
  | 'cost'
  | 'time';

/** One difference between a recorded turn and its replay. */
export interface Divergence {
  /** Its kind. */
  readonly kind: DivergenceKind;
  /** Where: `/toolCalls/0/input/city`, `/custom/likes/2`, `/artifacts/plan.md`, `/text`, `/finishReason`, `/model`. */
  readonly path: string;
  /** Whether the value was added, removed or changed. */
  readonly change: 'added' | 'removed' | 'changed';
  /** The recorded value. */
  readonly recorded?: Json;
  /** The value of the replay. */
  readonly replayed?: Json;
}

/** How much more than recorded a turn may take, as a factor: 1.2 allows a fifth more. */
export interface Tolerance {
  /** Factor for tokens. */
  readonly tokens?: number;
  /** Factor for the cost. */
  readonly cost?: number;
  /** Factor for the duration. */
  readonly time?: number;
}

/** Parts that a comparison leaves out: the effects of the turn's tools are not known, so its state cannot be the same. */
export interface Unknown {
  readonly custom: boolean;
  readonly artifacts: boolean;
}

/** The differences between a recorded turn and its replay. */
export function compareTurns(
  recorded: TurnSide,
  replayed: TurnSide,
  options: { readonly unknown?: Unknown; readonly tolerance?: Tolerance | undefined } = {},
): Divergence[] {
  const { unknown, tolerance = {} } = options;
  return [
    ...compareToolCalls(recorded.toolCalls, replayed.toolCalls),
    ...(unknown?.custom ? [] : compareJson('custom', '/custom', recorded.custom, replayed.custom)),
    ...(unknown?.artifacts ? [] : compareArtifacts(recorded.artifacts, replayed.artifacts)),
    ...compareValue('finishReason', recorded.finishReason, replayed.finishReason, replayed.error),
    ...compareValue('text', spoken(recorded), spoken(replayed)),
    ...compareValue('content', contentOf(recorded), contentOf(replayed)),
    ...exceeded('tokens', tolerance.tokens, tokensOf(recorded), tokensOf(replayed)),
    ...costsMore(tolerance.cost, recorded.usage?.cost ?? {}, replayed.usage?.cost ?? {}),
    ...exceeded('time', tolerance.time, recorded.time, replayed.time),
  ];
}

/** The words of the model in a turn, as one text. */
export function spoken({ messages }: Pick<TurnSide, 'messages'>): string {
  return modelMessages(messages)
    .map(textOf)
    .filter((text) => text !== '')
    .join('\n');
}

/** The tokens of a side. */
export function tokensOf({ usage }: Pick<TurnSide, 'usage'>): number {
  return usage?.totalTokens ?? (usage?.inputTokens ?? 0) + (usage?.outputTokens ?? 0);
}

function modelMessages(messages: readonly Message[]): readonly Message[] {
  return messages.filter(({ role }) => role === 'model');
}

/** Parts of the answer besides text, reasoning and tool requests, such as images. */
function contentOf({ messages }: TurnSide): Json {
  const isOther = (part: Part): boolean =>
    !('text' in part || 'toolRequest' in part || 'reasoning' in part);
  const parts = modelMessages(messages).flatMap(({ content }) => content.filter(isOther));
  return parts as unknown as Json;
}

function compareValue(
  kind: 'finishReason' | 'text' | 'content',
  recorded: Json | undefined,
  replayed: Json | undefined,
  error?: TurnSide['error'],
): Divergence[] {
  if (jsonEqual(recorded ?? null, replayed ?? null)) return [];
  const shown = error === undefined ? replayed : `${replayed}: ${error.message}`;
  return [
    {
      kind,
      path: `/${kind}`,
      change: 'changed',
      ...(recorded !== undefined && { recorded }),
      ...(shown !== undefined && { replayed: shown }),
    },
  ];
}

function compareArtifacts(
  recorded: readonly Artifact[],
  replayed: readonly Artifact[],
): Divergence[] {
  const before = byName(recorded);
  const after = byName(replayed);
  const divergences: Divergence[] = [];
  for (const [name, artifact] of before) {
    const path = `/artifacts/${name}`;
    const other = after.get(name);
    if (other === undefined)
      divergences.push({ kind: 'artifact', path, change: 'removed', recorded: artifact });
    else if (!jsonEqual(artifact, other))
      divergences.push({
        kind: 'artifact',
        path,
        change: 'changed',
        recorded: artifact,
        replayed: other,
      });
  }
  for (const [name, artifact] of after) {
    if (before.has(name)) continue;
    const path = `/artifacts/${name}`;
    divergences.push({ kind: 'artifact', path, change: 'added', replayed: artifact });
  }
  return divergences;
}

function byName(artifacts: readonly Artifact[]): Map<string, Json> {
  let unnamed = 0;
  return new Map(artifacts.map((each) => [each.name ?? `#${unnamed++}`, each as unknown as Json]));
}

function exceeded(
  kind: 'tokens' | 'time',
  factor: number | undefined,
  recorded: number | undefined,
  replayed: number | undefined,
): Divergence[] {
  if (factor === undefined || recorded === undefined || replayed === undefined) return [];
  if (replayed <= recorded * factor) return [];
  return [{ kind, path: `/${kind}`, change: 'changed', recorded, replayed }];
}

/** Compares each currency that both sides have. */
function costsMore(factor: number | undefined, recorded: Cost, replayed: Cost): Divergence[] {
  if (factor === undefined) return [];
  return Object.entries(recorded).flatMap(([currency, spent]) => {
    const now = replayed[currency] ?? 0;
    if (now <= spent * factor) return [];
    return [
      {
        kind: 'cost',
        path: `/cost/${currency}`,
        change: 'changed',
        recorded: spent,
        replayed: now,
      },
    ] as const;
  });
}

/** The tool calls that differ. Calls are paired in order: first those that ask the same, then those of the same tool. */
function compareToolCalls(
  recorded: readonly ToolCall[],
  replayed: readonly ToolCall[],
): Divergence[] {
  const pairs = pair(recorded, replayed);
  const taken = new Set(pairs.values());
  const divergences: Divergence[] = [];
  for (const [at, call] of recorded.entries()) {
    const path = `/toolCalls/${at}`;
    const other = pairs.get(at);
    const found = other === undefined ? undefined : replayed[other];
    if (found === undefined)
      divergences.push({ kind: 'toolCall', path, change: 'removed', recorded: asked(call) });
    else divergences.push(...compareCall(path, call, found));
  }
  for (const [at, call] of replayed.entries()) {
    if (taken.has(at)) continue;
    const path = `/toolCalls/${at}`;
    divergences.push({ kind: 'toolCall', path, change: 'added', replayed: asked(call) });
  }
  return divergences;
}

/** The replayed call for each recorded one, by place. */
function pair(
  recorded: readonly ToolCall[],
  replayed: readonly ToolCall[],
): ReadonlyMap<number, number> {
  const pairs = new Map<number, number>();
  const free = new Set(replayed.keys());
  const match = (same: (a: ToolCall, b: ToolCall) => boolean): void => {
    for (const [at, call] of recorded.entries()) {
      if (pairs.has(at)) continue;
      const other = [...free].find((place) => same(call, replayed[place] as ToolCall));
      if (other === undefined) continue;
      pairs.set(at, other);
      free.delete(other);
    }
  };
  match((a, b) => a.name === b.name && jsonEqual(a.input, b.input));
  match((a, b) => a.name === b.name);
  return pairs;
}

function compareCall(path: string, recorded: ToolCall, replayed: ToolCall): Divergence[] {
  return [
    ...compareJson('toolCall', `${path}/input`, recorded.input, replayed.input),
    ...compareJson('toolResult', `${path}/output`, recorded.output, replayed.output),
    ...compareJson('toolResult', `${path}/content`, recorded.content, replayed.content),
    ...compareJson('toolResult', `${path}/error`, recorded.error, replayed.error),
    ...compareJson('toolResult', `${path}/interrupt`, recorded.interrupt, replayed.interrupt),
  ];
}

function asked({ name, input }: ToolCall): Json {
  return { name, input };
}

/** The places where two documents differ. One that is missing is as good as `null`. */
function compareJson(
  kind: DivergenceKind,
  path: string,
  recorded: Json | undefined,
  replayed: Json | undefined,
): Divergence[] {
  if (recorded === replayed) return [];
  return diffJson(recorded ?? null, replayed ?? null).map((operation) => {
    const before = valueAt(recorded, operation.path);
    const after = 'value' in operation ? operation.value : undefined;
    return {
      kind,
      path: path + operation.path,
      change: changes[operation.op as keyof typeof changes] ?? 'changed',
      ...(before !== undefined && operation.op !== 'add' && { recorded: before }),
      ...(after !== undefined && { replayed: after }),
    };
  });
}

const changes = { add: 'added', remove: 'removed', replace: 'changed' } as const;

/** The value at a pointer, as far as the document has it: after earlier operations its places may have moved. */
function valueAt(document: Json | undefined, pointer: string): Json | undefined {
  let value = document;
  for (const step of parsePointer(pointer) ?? []) {
    if (isJsonArray(value)) value = value.at(Number(step));
    else if (isJsonObject(value)) value = Object.hasOwn(value, step) ? value[step] : undefined;
    else return undefined;
  }
  return value;
}

/** Whether a difference is one of the kinds, or at or below one of the paths, that do not count. */
export function isIgnored({ kind, path }: Divergence, ignore: readonly string[]): boolean {
  return ignore.some((each) => each === kind || path === each || path.startsWith(`${each}/`));
}
