import { type Json, jsonEqual } from '../../core/json/json.ts';
import type { Message, Part } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Cost } from '../../protocol/turn.ts';
import type { TurnSide } from '../recording/recorded-session.ts';
import { compareJson } from './compare-json.ts';
import { compareToolCalls } from './compare-tool-calls.ts';
import type { Divergence, Tolerance } from './divergence.ts';

/** What a comparison leaves out: the effects of the turn's tools are not known, so its state cannot be the same. */
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

/** What the model said in a turn, as one text. */
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

/** What the model said besides text, reasoning and tool requests, such as images. */
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
