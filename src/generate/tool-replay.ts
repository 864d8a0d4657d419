import { type ContextKey, createContextKey } from '../core/async/context.ts';
import type { Json } from '../core/json/json.ts';
import type { ToolRequestPart } from '../protocol/message.ts';
import type { ModelRef } from './model.ts';
import type { ToolOutcome } from './progress.ts';

/** A tool call that is about to run. */
export interface ReplayedCall {
  readonly request: ToolRequestPart;
  /** There when the call was restarted after an interrupt. */
  readonly resumed?: Json | undefined;
}

/** Answers tool calls in place of the tools. */
export interface ToolReplay {
  /** The answer to a call; `undefined` lets the tool run. */
  answer(call: ReplayedCall): ToolOutcome | undefined | Promise<ToolOutcome | undefined>;
  /** All calls of one model message are answered. */
  endRound(): void;
  /** A generate call has begun, with this model or with the app's. */
  onGenerate(model: ModelRef | undefined): void;
}

/** Set while a recorded session is replayed. Every generate call inside asks it first, whichever app it belongs to. */
export const toolReplay: ContextKey<ToolReplay> = createContextKey('waymark.toolReplay');
