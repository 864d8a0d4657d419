import { type App, waymark } from '../../app.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { Artifact } from '../../protocol/state.ts';
import { currentSession } from '../../session/session.ts';
import type { Store } from '../../store/contract/store.ts';

/** The agents of the contract. */
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
  | 'gate'
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

/** The custom state of the stateful agents. */
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
    // Longer than a busy machine may pause a process.
    claimTtl: 60_000,
    // Many cases make turns fail on purpose.
    onError: () => {},
  });
  const tools = defineTools(app);
  definePromptAgents(app, tools);
  defineClientAgents(app);
  defineKeeper(app);
  defineMoody(app);
  definePainter(app);
  defineLoop(app, tools);
  defineGate(app);
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
    /** Changes the custom state and an artifact. */
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
    /** Pauses for approval. */
    transfer: app.defineTool(
      { name: 'transfer', description: 'Moves money.', input: oneText('to') },
      (input, { interrupt, resumed }) => {
        if (resumed === undefined) interrupt({ question: 'Really?' });
        if (resumed === 'later') interrupt({ question: 'Now?' });
        return { moved: (input as { to: string }).to, resumed: resumed ?? null };
      },
    ),
    /** Returns a falsy value. */
    nothing: app.defineTool(
      { name: 'nothing', description: 'Returns next to nothing.', input: oneText('kind') },
      (input) => {
        const values: Record<string, unknown> = { zero: 0, false: false, empty: '', null: null };
        return values[(input as { kind: string }).kind];
      },
    ),
    /** Interrupts with a falsy value. */
    ask: app.defineTool(
      { name: 'ask', description: 'Asks with next to nothing.', input: oneText('kind') },
      (input, { interrupt }) => {
        const values: Record<string, Json> = { zero: 0, false: false, empty: '', null: null };
        return interrupt(values[(input as { kind: string }).kind]);
      },
    ),
    /** Never finishes. */
    slow: app.defineTool(
      { name: 'slow', description: 'Never finishes.' },
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
    // Callers in plain JavaScript have no types.
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

/** Executes the command in the user message: `state`, `patch`, `artifact`, `status`, `output`, `rewrite`; echoes everything. */
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
      // A change after the last turn: it is saved at the end of the invocation.
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

/** Fails in the phase that the user message names. */
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

/** Adds, sends and sets artifacts by command: `add:a`, `send:a=text`, `set:a,b=text`. */
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

/** A custom agent that behaves like a prompt agent. */
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

/** Pauses in its handler, without a tool, and reads the answers itself. Its notes are the inputs that it was called with. */
function defineGate(app: App): void {
  const options = { name: 'gate', state: notesSchema, initialState: { notes: [] } };
  app.defineCustomAgent(options, (session) =>
    session.run(({ resume }) => {
      session.updateCustom((custom) => {
        (custom as unknown as Notes).notes.push(resume ? 'answer' : 'message');
      });
      if (resume === undefined) {
        const ask = (ref: string): ToolRequestPart => ({
          toolRequest: { name: 'review', ref, input: { draft: ref } },
          metadata: { interrupt: { question: 'Publish?' } },
        });
        session.addMessages({ role: 'model', content: [ask('a'), ask('b')] });
        return;
      }
      session.addMessages(
        { role: 'tool', content: [...(resume.respond ?? [])] },
        { role: 'model', content: [{ text: 'Published.' }] },
      );
    }),
  );
}

/** Starts its turn loop twice; its output contains both results. */
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

/** Uses one key for two concurrent steps, then again, and retries a failed step; its output contains all results. */
function defineStepper(app: App): void {
  app.defineCustomAgent({ name: 'stepper' }, (session) =>
    session.run(async () => {
      const steps = await Promise.allSettled([
        session.step('key', () => 'first'),
        session.step('key', () => 'second'),
      ]);
      const again = await Promise.allSettled([session.step('key', () => 'third')]);
      const failed = await Promise.allSettled([
        session.step('failing', () =>
          Promise.reject(new WaymarkError('UNAVAILABLE', 'on purpose')),
        ),
      ]);
      const retried = await Promise.allSettled([session.step('failing', () => 'retried')]);
      const output = [...steps, ...again, ...failed, ...retried].map((each) =>
        each.status === 'fulfilled' ? each.value : (each.reason as WaymarkError).status,
      );
      return { output };
    }),
  );
}

/** Sends the user message as its status; as a number if it is one. */
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

/** Adds a tool request whose `metadata.interrupt` is the user message, parsed as JSON. */
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
