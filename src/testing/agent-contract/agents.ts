import { type App, waymark } from '../../app.ts';
import type { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Tool } from '../../generate/tool.ts';
import type { Artifact } from '../../protocol/state.ts';
import { currentSession } from '../../session/session.ts';
import type { Store } from '../../store/contract/store.ts';

/** The agents that the contract speaks of. */
export type ContractAgentName =
  | 'chat'
  | 'helper'
  | 'teller'
  | 'keeper'
  | 'held'
  | 'sealed'
  | 'shy'
  | 'moody'
  | 'painter'
  | 'loop'
  | 'doubled'
  | 'stepper'
  | 'asker'
  | 'signaller'
  | 'thrifty'
  | 'promising'
  | 'discreet'
  | 'eager'
  | 'careful'
  | 'fleeting'
  | 'patient'
  | 'forking';

const notesSchema = {
  type: 'object',
  properties: { notes: { type: 'array', items: { type: 'string' } } },
  required: ['notes'],
  additionalProperties: false,
} as const;

/** The custom state of the agents that have one. */
interface Notes {
  notes: string[];
}

/** An app with the agents of the contract. The same definitions run in every process and behind every transport. */
export function createContractApp(options: {
  readonly store: Store;
  readonly model: ModelRef;
}): App {
  const app = waymark({
    store: options.store,
    model: options.model,
    // Longer than a process stands still on a busy machine.
    claimTtl: 60_000,
    // Many cases let turns fail on purpose.
    onError: () => {},
  });
  const tools = defineTools(app);
  definePromptAgents(app, tools);
  defineClientAgents(app);
  defineKeeper(app);
  defineMoody(app);
  definePainter(app);
  defineLoop(app, tools);
  defineDoubled(app);
  defineStepper(app);
  defineAsker(app);
  defineSignaller(app);
  return app;
}

interface Tools {
  readonly note: Tool;
  readonly transfer: Tool;
  readonly nothing: Tool;
  readonly ask: Tool;
  readonly slow: Tool;
}

function oneText(name: string): JsonSchema {
  return { type: 'object', properties: { [name]: { type: 'string' } }, required: [name] };
}

function defineTools(app: App): Tools {
  return {
    /** Writes into the custom state and into an artifact. */
    note: app.defineTool(
      { name: 'note', description: 'Takes a note.', input: oneText('text') },
      (input) => {
        const { text } = input as { text: string };
        const session = currentSession<Notes>();
        session.updateCustom(({ notes }) => {
          notes.push(text);
        });
        const { notes } = session.custom;
        session.addArtifacts({ name: 'notes.txt', parts: [{ text: notes.join('\n') }] });
        return notes.length;
      },
    ),
    /** Asks before it does anything. */
    transfer: app.defineTool(
      { name: 'transfer', description: 'Moves money.', input: oneText('to') },
      (input, { interrupt, resumed }) => {
        if (resumed === undefined) interrupt({ question: 'Really?' });
        if (resumed === 'later') interrupt({ question: 'Now?' });
        return { moved: (input as { to: string }).to, resumed: resumed ?? null };
      },
    ),
    /** Returns one of the values that look like nothing. */
    nothing: app.defineTool(
      { name: 'nothing', description: 'Returns next to nothing.', input: oneText('kind') },
      (input) => {
        const values: Record<string, unknown> = { zero: 0, false: false, empty: '', null: null };
        return values[(input as { kind: string }).kind];
      },
    ),
    /** Asks with one of the values that look like nothing. */
    ask: app.defineTool(
      { name: 'ask', description: 'Asks with next to nothing.', input: oneText('kind') },
      (input, { interrupt }) => {
        const values: Record<string, Json> = { zero: 0, false: false, empty: '', null: null };
        return interrupt(values[(input as { kind: string }).kind]);
      },
    ),
    /** Never comes to an end. */
    slow: app.defineTool(
      { name: 'slow', description: 'Takes for ever.' },
      () => new Promise(() => {}),
    ),
  };
}

function definePromptAgents(app: App, { note, transfer, nothing, ask, slow }: Tools): void {
  const withNotes = { state: notesSchema, initialState: { notes: [] }, tools: [note, slow] };
  app.defineAgent({ name: 'chat', system: 'Be brief.' });
  app.defineAgent({ name: 'helper', system: 'Notes: {{@state.notes}}', ...withNotes });
  app.defineAgent({ name: 'teller', tools: [transfer, nothing, ask] });
  app.defineAgent({ name: 'careful', tools: [transfer, nothing], snapshot: 'always' });
  app.defineAgent({ name: 'eager', ...withNotes, snapshot: 'always' });
  app.defineAgent({ name: 'fleeting', ...withNotes, snapshot: 'never' });
  app.defineAgent({ name: 'thrifty', snapshot: ({ eventIndex }) => eventIndex % 3 === 2 });
  app.defineAgent({
    name: 'promising',
    // JavaScript can be written without the types.
    snapshot: (() => Promise.reject(new Error('of no interest'))) as never,
  });
  app.defineAgent({ name: 'patient', concurrency: 'wait' });
  app.defineAgent({ name: 'forking', concurrency: 'fork' });
  app.defineAgent({
    name: 'shy',
    ...withNotes,
    transform: {
      state: ({ custom: _, artifacts: __, ...rest }) => rest,
      chunk: ({ artifact: _, ...rest }) => rest,
    },
  });
}

function defineClientAgents(app: App): void {
  app.defineAgent({ name: 'held', store: false, state: notesSchema });
  app.defineAgent({
    name: 'discreet',
    store: false,
    clientState: { secret: 'known to the server and to no client' },
    transform: { state: ({ messages = [] }) => ({ messages, sessionId: 'not this one' }) },
  });
  app.defineAgent({
    name: 'sealed',
    store: false,
    clientState: { secret: 'known to the server and to no client' },
  });
}

/** Does what the user says: `state`, `patch`, `artifact`, `status`, `output`, `rewrite`, and echoes everything. */
function defineKeeper(app: App): void {
  app.defineCustomAgent(
    { name: 'keeper', state: notesSchema, initialState: { notes: [] } },
    async (session, { respond }) => {
      let result: string | undefined;
      await session.run(async ({ message }) => {
        const [part] = message?.content ?? [];
        const text = part !== undefined && 'text' in part ? part.text : '';
        if (text.includes('state')) session.setCustom({ notes: [text] });
        if (text.includes('patch')) {
          session.updateCustom((draft) => {
            (draft as unknown as Notes).notes.push(text);
          });
        }
        if (text.includes('artifact')) await respond.artifact({ name: 'a', parts: [{ text }] });
        if (text.includes('status')) await respond.status({ phase: text });
        if (text.includes('rewrite')) session.setMessages(session.messages.slice(-1));
        if (text.includes('after')) result = text;
        await respond.modelChunk({ role: 'model', content: [{ text: `echo ${text}` }] });
        session.addMessages({ role: 'model', content: [{ text: `echo ${text}` }] });
      });
      if (result === undefined) return undefined;
      // Changed behind the last turn: the end of the invocation has something to save.
      session.updateCustom((draft) => {
        (draft as unknown as Notes).notes.push('after the last turn');
      });
      return {
        ...session.result(),
        output: result,
        ...(result.includes('length') && { finishReason: 'length' as const }),
      };
    },
  );
}

/** Fails where the user wants it to. */
function defineMoody(app: App): void {
  app.defineCustomAgent({ name: 'moody' }, async (session, { respond }) => {
    let after = false;
    await session.run(async ({ message }) => {
      const text = JSON.stringify(message?.content ?? []);
      await respond.modelChunk({ role: 'model', content: [{ text: 'hm' }] });
      if (text.includes('throw')) throw new Error('a secret of the handler');
      after = text.includes('outside');
      session.addMessages({ role: 'model', content: [{ text: 'fine' }] });
    });
    if (after) throw new Error('a secret behind the loop');
  });
}

/** Adds, sends and sets artifacts as the user says: `add:a`, `send:a=text`, `set:a,b=text`. */
function definePainter(app: App): void {
  const artifactOf = (spec: string): Artifact => {
    const [name = '', text = '0'] = spec.split('=');
    return { ...(name !== '' && { name }), parts: [{ text }] };
  };
  app.defineCustomAgent({ name: 'painter' }, (session, { respond }) =>
    session.run(async ({ message }) => {
      const [part] = message?.content ?? [];
      const text = part !== undefined && 'text' in part ? part.text : '';
      for (const order of text.split(' ')) {
        const [verb, what = ''] = order.split(':');
        if (verb === 'add') session.addArtifacts(artifactOf(what));
        else if (verb === 'send') await respond.artifact(artifactOf(what));
        else if (verb === 'set') session.setArtifacts(what.split(',').map(artifactOf));
      }
    }),
  );
}

/** What a prompt agent does, as a turn loop of its own. */
function defineLoop(app: App, { transfer, slow }: Tools): void {
  app.defineCustomAgent({ name: 'loop' }, (session, { respond }) =>
    session.run(async ({ resume }, { signal }) => {
      const { messages, finishReason } = await app.generate({
        messages: session.messages,
        tools: [transfer, slow],
        onChunk: respond.modelChunk,
        signal,
        ...(resume && { resume }),
      });
      session.addMessages(...messages);
      return { finishReason };
    }),
  );
}

/** Starts its turn loop twice; its output says what came of each. */
function defineDoubled(app: App): void {
  app.defineCustomAgent({ name: 'doubled' }, async (session, { respond }) => {
    const loop = (): Promise<void> =>
      session.run(async () => {
        await respond.modelChunk({ role: 'model', content: [{ text: 'ok' }] });
        session.addMessages({ role: 'model', content: [{ text: 'ok' }] });
      });
    const loops = await Promise.allSettled([loop(), loop()]);
    const output = loops.map((each) =>
      each.status === 'fulfilled' ? 'ran' : (each.reason as WaymarkError).status,
    );
    return { ...session.result(), output };
  });
}

/** Uses one key for two steps at once, then once more; its output says what came of each. */
function defineStepper(app: App): void {
  app.defineCustomAgent({ name: 'stepper' }, (session) =>
    session.run(async () => {
      const steps = await Promise.allSettled([
        session.step('key', () => 'first'),
        session.step('key', () => 'second'),
      ]);
      const again = await session.step('key', () => 'third');
      const output = steps.map((each) =>
        each.status === 'fulfilled' ? each.value : (each.reason as WaymarkError).status,
      );
      return { output: [...output, again] };
    }),
  );
}

/** Sends what the user says as its status, as a number where it is one. */
function defineSignaller(app: App): void {
  const status = {
    type: 'object',
    properties: { done: { type: 'number' } },
    required: ['done'],
  } as const;
  app.defineCustomAgent({ name: 'signaller', status }, (session, { respond }) =>
    session.run(async ({ message }) => {
      const [part] = message?.content ?? [];
      const text = part !== undefined && 'text' in part ? part.text : '';
      await respond.status({ done: Number.isNaN(Number(text)) ? text : Number(text) });
    }),
  );
}

/** Leaves a tool request with what the user says as its `metadata.interrupt`, as JSON. */
function defineAsker(app: App): void {
  app.defineCustomAgent({ name: 'asker' }, (session) =>
    session.run(({ message }) => {
      const [part] = message?.content ?? [];
      const text = part !== undefined && 'text' in part ? part.text : '';
      const metadata = { interrupt: JSON.parse(text) as Json };
      session.addMessages({
        role: 'model',
        content: [{ toolRequest: { name: 'ask', ref: text }, metadata }],
      });
    }),
  );
}
