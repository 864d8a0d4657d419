import { diffJson, valueAt } from '../core/json/diff.ts';
import { defined, type Json, jsonEqual } from '../core/json/json.ts';
import type { Message, Part } from '../protocol/message.ts';
import { textOf } from '../protocol/messages.ts';
import type { Artifact } from '../protocol/state.ts';
import { totalTokens } from '../protocol/usage.ts';
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

/** Parts that a comparison leaves out: the effects of the turn's tools are not known, so its state cannot be the same. */
export type Unknown = ReadonlySet<'custom' | 'artifacts'>;

/** A value of the recording, and that of the replay. */
type Both<Value = Json | undefined> = readonly [recorded: Value, replayed: Value];

export function compareTurns(
  recorded: TurnSide,
  replayed: TurnSide,
  unknown: Unknown,
  tolerance: { readonly tokens?: number; readonly cost?: number; readonly time?: number } = {},
): Divergence[] {
  const both = <Value>(of: (side: TurnSide) => Value): Both<Value> => [of(recorded), of(replayed)];
  const { error, finishReason } = replayed;
  const ended = error === undefined ? finishReason : `${finishReason}: ${error.message}`;
  return [
    ...compareToolCalls(recorded.toolCalls, replayed.toolCalls),
    ...(unknown.has('custom')
      ? []
      : compareJson(
          'custom',
          '/custom',
          both(({ custom }) => custom),
        )),
    ...(unknown.has('artifacts') ? [] : compareArtifacts(recorded.artifacts, replayed.artifacts)),
    ...(recorded.finishReason === finishReason
      ? []
      : [changed('finishReason', '/finishReason', [recorded.finishReason, ended])]),
    ...compareWhole('text', '/text', both(spoken)),
    ...compareWhole('content', '/content', both(contentOf)),
    ...exceeded('tokens', '/tokens', tolerance.tokens, both(tokensOf)),
    ...Object.keys(recorded.usage?.cost ?? {}).flatMap((currency) => {
      const costs = both(({ usage }) => usage?.cost?.[currency] ?? 0);
      return exceeded('cost', `/cost/${currency}`, tolerance.cost, costs);
    }),
    ...exceeded(
      'time',
      '/time',
      tolerance.time,
      both(({ time }) => time),
    ),
  ];
}

/** The words of the model in a turn, as one text. */
export function spoken({ messages }: Pick<TurnSide, 'messages'>): string {
  return modelMessages(messages)
    .map(textOf)
    .filter((text) => text !== '')
    .join('\n');
}

export function tokensOf({ usage }: Pick<TurnSide, 'usage'>): number {
  return totalTokens(usage ?? {});
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

function changed(kind: DivergenceKind, path: string, [recorded, replayed]: Both): Divergence {
  return { kind, path, change: 'changed', ...defined({ recorded, replayed }) };
}

function compareArtifacts(
  recorded: readonly Artifact[],
  replayed: readonly Artifact[],
): Divergence[] {
  const before = byName(recorded);
  const after = byName(replayed);
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((name) =>
    compareWhole('artifact', `/artifacts/${name}`, [before.get(name), after.get(name)]),
  );
}

function byName(artifacts: readonly Artifact[]): Map<string, Json> {
  let unnamed = 0;
  return new Map(artifacts.map((each) => [each.name ?? `#${unnamed++}`, each as unknown as Json]));
}

/** The difference of two values that are shown whole; one that is missing was added or removed. */
function compareWhole(kind: DivergenceKind, path: string, values: Both): Divergence[] {
  const difference = changed(kind, path, values);
  const [recorded, replayed] = values;
  if (recorded === undefined) return [{ ...difference, change: 'added' }];
  if (replayed === undefined) return [{ ...difference, change: 'removed' }];
  return jsonEqual(recorded, replayed) ? [] : [difference];
}

function exceeded(
  kind: 'tokens' | 'cost' | 'time',
  path: string,
  factor: number | undefined,
  values: Both<number | undefined>,
): Divergence[] {
  const [recorded, replayed] = values;
  if (factor === undefined || recorded === undefined || replayed === undefined) return [];
  return replayed <= recorded * factor ? [] : [changed(kind, path, values)];
}

/** The tool calls that differ. Calls are paired in order: first those that ask the same, then those of the same tool. */
function compareToolCalls(
  recorded: readonly ToolCall[],
  replayed: readonly ToolCall[],
): Divergence[] {
  const pairs = pair(recorded, replayed);
  const taken = new Set(pairs.values());
  const divergences = recorded.flatMap((call, at) => {
    const path = `/toolCalls/${at}`;
    const found = replayed[pairs.get(at) ?? -1];
    return found === undefined
      ? compareWhole('toolCall', path, [asked(call), undefined])
      : compareCall(path, call, found);
  });
  for (const [at, call] of replayed.entries()) {
    if (!taken.has(at))
      divergences.push(...compareWhole('toolCall', `/toolCalls/${at}`, [undefined, asked(call)]));
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
  return (['input', 'output', 'content', 'error', 'interrupt'] as const).flatMap((field) => {
    const kind = field === 'input' ? 'toolCall' : 'toolResult';
    return compareJson(kind, `${path}/${field}`, [recorded[field], replayed[field]]);
  });
}

function asked({ name, input }: ToolCall): Json {
  return { name, input };
}

/** The places where two documents differ. A missing document counts as `null`. */
function compareJson(kind: DivergenceKind, path: string, [recorded, replayed]: Both): Divergence[] {
  if (recorded === replayed) return [];
  return diffJson(recorded ?? null, replayed ?? null).map((operation) => {
    // After earlier operations its places may have moved.
    const before = valueAt(recorded, operation.path);
    const after = 'value' in operation ? operation.value : undefined;
    const isAdded = operation.op === 'add';
    return {
      ...changed(kind, path + operation.path, [isAdded ? undefined : before, after]),
      change: changes[operation.op as keyof typeof changes] ?? 'changed',
    };
  });
}

const changes = { add: 'added', remove: 'removed', replace: 'changed' } as const;

/** Whether a difference is one of the kinds, or at or below one of the paths, that do not count. */
export function isIgnored({ kind, path }: Divergence, ignore: readonly string[]): boolean {
  return ignore.some((each) => each === kind || path === each || path.startsWith(`${each}/`));
}
