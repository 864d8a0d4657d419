/**
 * A process on a store, for tests that kill it. Loads everything, says `ready`, and then does what its standard
 * input says, a line each. What it has promised and done is in its journal.
 */
import { flushCompileCache } from 'node:module';
import { createInterface } from 'node:readline';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { App } from '../../src/app.ts';
import { toWaymarkError } from '../../src/core/error.ts';
import { systemClock } from '../../src/core/time.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { clockOf, createCrashApp, openPlace, type Place } from './support/agents.ts';
import { openJournal } from './support/journal.ts';
import { runLoad } from './support/load.ts';
import { runTurn } from './support/run-turn.ts';

export interface WorkerOptions {
  readonly place: Place;
  readonly journal: string;
  readonly claimTtl: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as WorkerOptions;
const journal = openJournal(options.journal);
const store = await openPlace(options.place);
let app: App | undefined;

/** Opens the app at the first command, so that a process can stand by. */
function opened(): App {
  app ??= createCrashApp({
    store,
    journal,
    clock: clockOf(options.place),
    claimTtl: options.claimTtl,
  });
  return app;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs turns of every mode, in sessions with this name, until the process is killed. */
async function work(name: string): Promise<never> {
  const chat = opened().agent('chat');
  const steps = opened().agent('steps');
  const lane = async (agent: Agent, no: number): Promise<void> => {
    const modes = ['attached', 'accepted', 'detached'] as const;
    for (let turn = no; ; turn++) {
      const mode = modes[turn % modes.length] ?? 'attached';
      const texts = Array.from(
        { length: mode === 'detached' ? 3 : 1 },
        (_, input) => `${process.pid}.${no}.${turn}.${input} use ${(turn + input) % 3}`,
      );
      await runTurn(agent, { mode, texts, sessionId: `${agent.name} ${name}.${no}`, journal });
    }
  };
  const lanes = [0, 1, 2, 3].flatMap((no) => [lane(chat, no), lane(steps, no)]);
  return await Promise.race(lanes as Promise<never>[]);
}

/** Takes over expired runs until no open run is left that a worker could continue. */
async function quiet({ engine }: App, { runs }: Store): Promise<void> {
  for (;;) {
    await engine.recover();
    const open = (await runs?.listRuns()) ?? [];
    if (open.every(({ mode, expired }) => mode === 'attached' && expired)) return;
    await systemClock.sleep(20);
  }
}

/** How a turn ended for its caller: `saved`, or a status and message. */
async function attempt(sessionId: string, text: string): Promise<string> {
  try {
    const { error } = await opened()
      .agent('chat')
      .runText(text, { sessionId, throwOnError: false });
    return error === undefined ? 'saved' : `${error.status} ${error.message}`;
  } catch (error) {
    const { status, message } = toWaymarkError(error);
    return `${status} ${message}`;
  }
}

/** Runs one turn with a request id; prints the result that its caller gets. */
async function ask([mode, sessionId = '', requestId = '', ...text]: string[]): Promise<void> {
  const accept = mode === 'accepted';
  const told = await opened()
    .agent('chat')
    .runText(text.join(' '), { sessionId, requestId, accept, throwOnError: false })
    .then(
      ({ error, snapshotId }) => ({ status: error?.status ?? 'succeeded', snapshotId }),
      (error: unknown) => ({ status: toWaymarkError(error).status }),
    );
  say(`told-${requestId} ${JSON.stringify(told)}`);
}

/** Takes turns until one cannot be saved. */
async function fill(): Promise<void> {
  for (let saved = 0; ; saved++) {
    const told = await attempt('s', `${saved} ${'x'.repeat(4000)}`);
    if (told !== 'saved') return say(`told ${saved} ${told}`);
  }
}

async function obey(line: string): Promise<void> {
  const [command, ...words] = line.split(' ');
  switch (command) {
    case 'recover':
      await quiet(opened(), store);
      return say('quiet');
    case 'work':
      return await work(words.join(' '));
    case 'turn': {
      const [agent = '', mode = '', sessionId = '', ...rest] = words;
      await runTurn(opened().agent(agent), {
        mode: mode === 'accepted' || mode === 'detached' ? mode : 'attached',
        texts: rest.join(' ').split('; '),
        sessionId,
        journal,
      });
      return say('done');
    }
    case 'load': {
      const result = await runLoad(opened(), journal, Number(words[0]));
      return say(`loaded ${JSON.stringify(result)}`);
    }
    case 'nobody':
      // A user whom file permissions apply to.
      if (process.getuid?.() === 0) {
        process.setgid?.(65_534);
        process.setuid?.(65_534);
      }
      return;
    case 'ask':
      return await ask(words);
    case 'try':
      return say(`told ${await attempt('s', words.join(' '))}`);
    case 'fill':
      return await fill();
    case 'close':
      await opened().close({ grace: 0 });
      return process.exit();
    default:
      throw new Error(`no such command: ${line}`);
  }
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  obey(line).catch((error: unknown) => {
    const { status, message } = toWaymarkError(error);
    journal.write({ kind: 'error', status, message });
    say(`failed ${status}: ${message}`);
  });
});
// Ends with its parent.
lines.on('close', () => process.exit());
// A process that is killed would not leave it to the next one.
flushCompileCache();
say('ready');
