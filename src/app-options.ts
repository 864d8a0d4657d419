import type { ErrorInfo } from './agent/contract/error-reports.ts';
import type { Logger, TelemetryOptions } from './agent/contract/observability.ts';
import type { InterruptEvent } from './agent/contract/spec.ts';
import { WaymarkError } from './core/error.ts';
import { checkOptions, type OptionNames } from './core/options.ts';
import type { Clock } from './core/time.ts';
import type { Engine } from './engine/engine.ts';
import type { Price } from './generate/answer/price.ts';
import type { ModelRef } from './generate/model.ts';
import type { SkillsOption } from './generate/skill/skills.ts';
import type { SnapshotStore, Store } from './store/contract/store.ts';
import type { WebhookOptions } from './webhook/options.ts';

/** Options of an app. */
export interface AppOptions {
  /** The default model of agents and generate calls. */
  readonly model?: ModelRef;
  /**
   * Returns the cost of a model call, in integer micro-units by currency: `({ id }, { totalTokens = 0 }) => ({ USD: totalTokens * 2 })`.
   * `priceTable` of `waymark/prices` knows the prices of the common providers. @default no costs
   */
  readonly price?: Price;
  /** The store for sessions. Without a store, the client holds the state. */
  readonly store?: Store | SnapshotStore;
  /** A directory of `.prompt` files, loaded by `ready()`. */
  readonly promptDir?: string;
  /** The skills of prompt agents that name none: a folder with a folder for each skill, an MCP server, or a list of them. @default none */
  readonly skills?: SkillsOption;
  /** Milliseconds without a heartbeat after which another process takes over a run. @default 5000 */
  readonly claimTtl?: number;
  /** Executes background runs. @default in the process that accepted them */
  readonly engine?: Engine;
  /**
   * Whether this process executes runs that other processes accepted or handed over. Set it to `false` for a server
   * that only accepts requests. `WAYMARK_RECOVER=0` in the environment turns it off for all apps. @default true
   */
  readonly work?: boolean;
  /** Lets the app send signed webhooks. It needs a store. */
  readonly webhooks?: WebhookOptions;
  /** Number of sessions whose states are cached in memory between turns. @default 256 */
  readonly cacheSize?: number;
  /**
   * Called once for each failure in the app: of a turn, model call, tool, prompt, policy, transform, hook, save or
   * background run. Gets the thrown error with its stack, which remote clients never see. @default prints to standard error
   */
  readonly onError?: (error: unknown, info: ErrorInfo) => unknown;
  /**
   * Called after each turn that waits for the answer of a person, in the process that ran it, to notify people:
   * `onInterrupt: ({ runId, owner }) => app.webhooks?.send({ id: runId, … }, { owner })`.
   */
  readonly onInterrupt?: (event: InterruptEvent) => void | Promise<void>;
  /** Content of spans besides ids and counts. Tracing itself starts when you register OpenTelemetry. @default ids and counts only */
  readonly telemetry?: TelemetryOptions;
  /** Gets lines with fields: `info` one per turn, `error` one per failure, `warn` one per takeover, `debug` one per model call; a `pino` logger fits. Failures are then not printed. @default none */
  readonly logger?: Logger;
  /** @default the system's */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: () => string;
}

const appOptionNames: OptionNames<AppOptions> = {
  model: ['text', 'object'],
  price: 'function',
  store: true,
  promptDir: 'text',
  skills: ['text', 'object', 'list'],
  claimTtl: 'number',
  engine: 'object',
  work: 'boolean',
  webhooks: 'object',
  cacheSize: 'number',
  onError: 'function',
  onInterrupt: 'function',
  telemetry: 'object',
  logger: 'object',
  clock: 'object',
  newId: 'function',
};

/** Refuses options that `waymark` does not have, and values that cannot be right. */
export function checkAppOptions(options: AppOptions): void {
  checkOptions(options, appOptionNames, 'waymark()');
  if (options.store !== undefined && typeof options.store !== 'object') {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'The `store` of waymark() must be a store, such as sqliteStore("waymark.db") of waymark/sqlite.',
    );
  }
}
