import type { Json } from '../../core/json/json.ts';

/** An effect that happened more often because of a crash. */
export interface RepeatedEffect {
  /** The effect: a call of a tool, a network request, or an entry of `effects`. */
  readonly effect: string;
  /** Where it came from: `tool charge`, `step invoice` or `outside a tool`. */
  readonly where: string;
  /** How often it happened without a crash. */
  readonly expected: number;
  /** How often it happened at most with a crash. */
  readonly actual: number;
  /** The crash points after which it was repeated. */
  readonly points: readonly string[];
  /** The repair. */
  readonly advice: string;
}

/** A value that a crash changed. */
export interface LostState {
  /** The place in `{ messages, custom, artifacts, output, finishReason }`, as a JSON Pointer. */
  readonly path: string;
  /** The value without a crash. */
  readonly expected?: Json;
  /** The value after the crash. */
  readonly actual?: Json;
  /** The crash points after which it differed; empty if it already differs between two runs without a crash. */
  readonly points: readonly string[];
  /** The repair. */
  readonly advice: string;
}

/** The result of one crash. */
export interface CrashPoint {
  /** The turn: its input, or the session and number of a recorded one. */
  readonly turn: string;
  /** Where the process died. */
  readonly at: string;
  /** Model calls, tools, steps and handlers that ran again. */
  readonly ranAgain: readonly string[];
  /** Values that differ, effects that are missing, and the request if the client had to send it again. */
  readonly lost: readonly string[];
  /** `same`: as without a crash. `stuck`: the turn did not end. */
  readonly ended: 'same' | 'different' | 'failed' | 'stuck';
  /** Why the turn failed. */
  readonly error?: string;
}

/** The report of a crash test. */
export interface CrashReport {
  /** Tells it from other reports. */
  readonly kind: 'crash-test';
  /** The name of the agent. */
  readonly agent: string;
  /** Whether no crash repeated an effect or changed how a turn ended. */
  readonly ok: boolean;
  /** All crash points, in order. */
  readonly points: readonly CrashPoint[];
  /** Effects that happened again after a crash. */
  readonly repeatedEffects: readonly RepeatedEffect[];
  /** State that a crash lost. */
  readonly lostState: readonly LostState[];
  /** Recorded turns that could not be tested. */
  readonly skipped: readonly { readonly turn: string; readonly reason: string }[];
}
