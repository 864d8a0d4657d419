import type { Agent } from '../../src/agent/contract/agent.ts';
import type { App } from '../../src/app.ts';
import { abortError } from '../../src/core/async/signal.ts';
import type { Model } from '../../src/generate/model.ts';
import type { Part } from '../../src/protocol/message.ts';
import { clockOf } from './clock.ts';
import type { Actor, Scheduler } from './scheduler.ts';
import { replyTo } from './script.ts';

/** An effect of a tool in another system. */
export interface Effect {
  readonly tool: string;
  readonly tag: string;
  readonly key: string;
  readonly process: Actor;
}

/** Calls to the outside world, as the outside world counts them. */
export interface Outside {
  readonly effects: Effect[];
  onEffect(effect: Effect): void;
  modelCalls: number;
}

/** Settings of the agent that vary between episodes. */
export interface DeskOptions {
  readonly concurrency: 'wait' | 'reject';
  readonly outside: Outside;
}

interface Place {
  readonly scheduler: Scheduler;
  readonly actor: Actor;
}

const tagOnly = {
  type: 'object',
  properties: { tag: { type: 'string' } },
  required: ['tag'],
} as const;

/** Defines the agent of the simulation. */
export function defineDesk(app: App, place: Place, { concurrency, outside }: DeskOptions): Agent {
  const { scheduler, actor } = place;
  const act = async (tool: string, tag: string, key: string): Promise<string> => {
    await scheduler.pause(actor, `${tool} →`);
    const effect = { tool, tag, key, process: actor };
    outside.effects.push(effect);
    outside.onEffect(effect);
    await scheduler.pause(actor, `${tool} ←`);
    return `${tool} ${tag}`;
  };
  const define = (
    name: string,
    run: (tag: string, context: never) => Promise<string>,
    held = false,
  ) =>
    app.defineTool(
      { name, description: name, input: tagOnly, needsApproval: held },
      async (input, context) => run((input as { tag: string }).tag, context as never),
    );
  const tools = [
    define('charge', (tag, { idempotencyKey }: { idempotencyKey: string }) =>
      act('charge', tag, idempotencyKey),
    ),
    define(
      'book',
      (tag, { idempotencyKey }: { idempotencyKey: string }) => act('book', tag, idempotencyKey),
      true,
    ),
    define(
      'job',
      (
        tag,
        context: {
          idempotencyKey: string;
          checkpoint<V>(name: string, fn: () => Promise<V>): Promise<V>;
        },
      ) => context.checkpoint('start', () => act('job', tag, context.idempotencyKey)),
    ),
    define(
      'note',
      async (
        tag,
        { session }: { session: { updateCustom(fn: (draft: { notes: string[] }) => void): void } },
      ) => {
        await scheduler.pause(actor, 'note');
        session.updateCustom((draft) => {
          draft.notes.push(tag);
        });
        return `note ${tag}`;
      },
    ),
  ];
  return app.defineAgent({
    name: 'desk',
    model: deskModel(place, outside),
    tools,
    initialState: { notes: [] as string[] },
    concurrency,
  }) as unknown as Agent;
}

function deskModel({ scheduler, actor }: Place, outside: Outside): Model {
  const clock = clockOf(actor, scheduler);
  return {
    name: 'desk-model',
    provider: 'simulation',
    price: () => ({ USD: 1 }),
    async run({ messages }, { stream, signal }) {
      outside.modelCalls++;
      await scheduler.pause(actor, 'model →');
      if (signal.aborted) throw abortError(signal);
      const { tool, text, hangs, fails } = replyTo(messages);
      if (fails) throw new Error('on purpose');
      const pieces: Part[] =
        tool === undefined
          ? pieceTexts(text ?? '')
          : [
              {
                toolRequest: {
                  name: tool.name,
                  ref: `${tool.name}-${tool.tag}`,
                  input: { tag: tool.tag },
                },
              },
            ];
      for (const [at, piece] of pieces.entries()) {
        if (at === 1 && hangs) await clock.sleep(600_000, signal);
        await stream({ content: [piece] });
        await scheduler.pause(actor, 'model chunk');
        if (signal.aborted) throw abortError(signal);
      }
      return {
        message: { role: 'model', content: text === undefined ? pieces : [{ text }] },
        finishReason: 'stop',
        usage: { inputTokens: messages.length, outputTokens: 1, totalTokens: messages.length + 1 },
      };
    },
  };
}

function pieceTexts(text: string): Part[] {
  const middle = Math.ceil(text.length / 2);
  return [{ text: text.slice(0, middle) }, { text: text.slice(middle) }];
}
