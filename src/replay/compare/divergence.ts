import type { Json } from '../../core/json/json.ts';

/** What differs. `tokens`, `cost` and `time` count only with a tolerance. */
export type DivergenceKind =
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
  /** What differs. */
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
