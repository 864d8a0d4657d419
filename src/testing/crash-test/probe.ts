import { hasStatus } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { type ContextKey, createContextKey } from '../../core/platform.ts';
import { type CallProbe, callProbe, type ToolReplay } from '../../generate/hooks.ts';
import { isBadCall, type Tool } from '../../generate/tool/tool.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import type { ModelAnswers } from './model-answers.ts';
import { masked, shorten } from './outcome.ts';

/** An effect outside of the session. */
export interface Effect {
  /** The effect, as the report names it. */
  readonly name: string;
  /** Where it came from: a tool, a step, or outside of both. */
  readonly where: string;
  /** Effects with the same key happen once in the system that gets them. */
  key?: string;
}

/** The records of one run and of its continuation after a crash. */
export interface RunLog {
  /** The places where the first process could die, in order. */
  readonly points: string[];
  /** Everything that began to run, as often as it did. */
  readonly begun: string[];
  readonly effects: Effect[];
}

interface ProbeOptions {
  readonly log: RunLog;
  readonly answers: ModelAnswers;
  /** The effects that other systems have seen; absent: calls of tools count as effects. */
  readonly effects: (() => readonly unknown[]) | undefined;
  /** The point at which the process dies. */
  readonly killAt?: number | undefined;
  /** A process that is only watched has no points. */
  readonly isLast?: boolean;
  /** Called when the process dies. */
  readonly onDeath: () => void;
}

const outside = 'outside a tool';

/** Whether a tool or a model runs. */
const isInside: ContextKey<true> = createContextKey('waymark.isInside');

/** The calls of one simulated process to models, tools and its store: where it can die, and what it did. */
export class ProcessProbe implements CallProbe {
  readonly #options: ProbeOptions;
  readonly #steps: string[] = [];
  readonly #tools: string[] = [];
  readonly #seen = new Map<string, number>();
  readonly #asked = new Map<string, number>();
  #effectsSeen: ReadonlyMap<string, number>;
  dead = false;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#effectsSeen = countTexts(options.effects?.() ?? []);
  }

  /** A place where the process can die. A dead process never gets past one. */
  async pass(name: string): Promise<void> {
    if (this.dead) return forever();
    this.look();
    const { log, killAt, isLast = false, onDeath } = this.#options;
    if (isLast) return;
    const count = (this.#seen.get(name) ?? 0) + 1;
    this.#seen.set(name, count);
    const at = log.points.push(count === 1 ? name : `${name} (${count})`) - 1;
    if (at !== killAt) return;
    this.dead = true;
    onDeath();
    return forever();
  }

  begin(name: string): void {
    this.#options.log.begun.push(name);
  }

  /** A step has begun, or its result is stored. */
  step(name: string, isDone: boolean): void {
    this.look();
    const at = this.#steps.lastIndexOf(name);
    if (isDone) this.#steps.splice(at, at < 0 ? 0 : 1);
    else {
      this.#steps.push(name);
      this.begin(`step ${name}`);
    }
  }

  /** Notes the effects that other systems have seen since the last time. */
  look(): void {
    const counts = countTexts(this.#options.effects?.() ?? []);
    for (const [name, count] of counts) {
      for (let more = count - (this.#effectsSeen.get(name) ?? 0); more > 0; more--)
        this.#options.log.effects.push({ name, where: this.#where });
    }
    this.#effectsSeen = counts;
  }

  /** Notes a network request that may have an effect. Those of a tool count as its call, and those of a model are its own. */
  request(name: string, key: string | undefined): void {
    const { log, effects } = this.#options;
    if (this.dead || effects !== undefined || isInside.get()) return;
    log.effects.push({ name, where: this.#where, ...(key !== undefined && { key }) });
  }

  async model(
    ...[call, run]: Parameters<CallProbe['model']>
  ): Promise<Awaited<ReturnType<CallProbe['model']>>> {
    const place = call.request.messages.filter(({ role }) => role === 'model').length + 1;
    const name = `model call ${place}`;
    await this.pass(`before ${name}`);
    this.begin(name);
    const answer = await isInside.run(true, () =>
      this.#options.answers.call(call, run, this.#asked),
    );
    await this.pass(`after ${name}`);
    return answer;
  }

  async tool(...[{ tool, input, context }, run]: Parameters<CallProbe['tool']>): Promise<unknown> {
    const label = `tool ${tool.name}`;
    await this.pass(`before ${label}`);
    const call = `${label}(${textOf(input)})`;
    this.begin(call);
    this.#tools.push(label);
    const isCounted = this.#options.effects === undefined && !isRepeatable(tool);
    const effect: Effect | undefined = isCounted ? { name: call, where: label } : undefined;
    if (effect) this.#options.log.effects.push(effect);
    const drop = (): void => {
      const { effects } = this.#options.log;
      const at = effect ? effects.indexOf(effect) : -1;
      if (at >= 0) effects.splice(at, 1);
    };
    try {
      return await isInside.run(true, () => run(this.#watched(context, { call, effect, drop })));
    } catch (error) {
      // It refused its input, or waits for an answer, and has not done its work.
      if (isBadCall(error) || hasStatus(error, 'CANCELLED')) drop();
      throw error;
    } finally {
      this.look();
      this.#tools.splice(this.#tools.lastIndexOf(label), 1);
      await this.pass(`after ${label}`);
    }
  }

  /** Calls of recorded tools, which do not run: the process can die before and after them as well. */
  answering(tools: ToolReplay): ToolReplay {
    return {
      ...tools,
      answer: async (call) => {
        const outcome = await tools.answer(call);
        const { name, input } = call.request.toolRequest;
        if (outcome === undefined) return undefined;
        await this.pass(`before tool ${name}`);
        this.begin(`tool ${name}(${textOf(input)})`);
        await this.pass(`after tool ${name}`);
        return outcome;
      },
    };
  }

  /** The context of a tool, which notes whether the tool takes care that its effects happen once. */
  #watched(
    context: ToolContext,
    { call, effect, drop }: { call: string; effect: Effect | undefined; drop: () => void },
  ): ToolContext {
    const { log } = this.#options;
    const own: Effect[] = effect ? [effect] : [];
    let key: string | undefined;
    return {
      ...context,
      get idempotencyKey() {
        key = context.idempotencyKey;
        for (const each of own) each.key = `${key} ${each.name}`;
        return key;
      },
      checkpoint(name, fn) {
        // Its effects are those of its checkpoints.
        drop();
        return context.checkpoint(name, () => {
          const inner: Effect = { name: `${call}, checkpoint ${name}`, where: effect?.where ?? '' };
          if (key !== undefined) inner.key = `${key} ${inner.name}`;
          own.push(inner);
          if (effect) log.effects.push(inner);
          return fn();
        });
      },
    };
  }

  get #where(): string {
    const step = this.#steps.at(-1);
    return this.#tools.at(-1) ?? (step === undefined ? outside : `step ${step}`);
  }
}

/** The probe of the process that the caller runs in. */
export function currentProbe(): ProcessProbe | undefined {
  const probe = callProbe.get();
  return probe instanceof ProcessProbe ? probe : undefined;
}

/** Whether a tool is declared to have no effect, or one that may happen twice, by the hints of MCP. */
export function isRepeatable({ metadata = {}, definition }: Tool): boolean {
  const { mcp } = metadata;
  const given = isJsonObject(mcp) ? mcp.annotations : metadata.annotations;
  const { readOnlyHint, idempotentHint } = isJsonObject(given) ? given : {};
  return readOnlyHint === true || idempotentHint === true || definition.provider !== undefined;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return shorten(String(masked(value)));
  const text = JSON.stringify(value ?? null) ?? String(value);
  return shorten(JSON.stringify(masked(JSON.parse(text) as Json)));
}

/** In which order a list of several systems names their effects does not matter. */
function countTexts(values: readonly unknown[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const value of values) {
    const text = textOf(value);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return counts;
}

/** The outside calls of a dead process never settle. Each gets a promise of its own, so that it can be collected. */
export function forever(): Promise<never> {
  return new Promise<never>(() => {});
}
