/**
 * A process that accepts background runs, for a test that kills it. `lanes` starts runs without end, each under a request id of its
 * own; `ask <id>` sends one of them again. Each answer is a line: `told <request id> <run id>`.
 */
import { createInterface } from 'node:readline';
import { waymark } from '../../src/app.ts';
import { toWaymarkError } from '../../src/core/error.ts';
import { systemClock } from '../../src/core/time.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { openPlace, type Place } from './support/agents.ts';

const store = await openPlace(JSON.parse(process.argv[2] ?? '{}') as Place);
const app = waymark({
  store,
  clock: systemClock,
  claimTtl: 1_000,
  model: scriptedModel({ patterns: [], afterTools: () => 'Done.', otherwise: 'Done.' }),
  onError: () => {},
});
app.defineAgent({ name: 'desk' });

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

async function start(requestId: string): Promise<void> {
  try {
    const options = { requestId, sessionId: `session ${requestId}` };
    const { id } = await app.agent('desk').start('hello', options);
    say(`told ${requestId} ${id}`);
  } catch (error) {
    const { status, message } = toWaymarkError(error);
    say(`failed ${requestId} ${status} ${message}`);
  }
}

async function lane(no: number): Promise<never> {
  for (let at = 0; ; at++) {
    const requestId = `${process.pid}.${no}.${at}`;
    say(`asks ${requestId}`);
    await start(requestId);
  }
}

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  const [command, word = ''] = line.split(' ');
  if (command === 'ask') void start(word);
  else for (let no = 0; no < 4; no++) void lane(no);
});
// Ends with its parent.
lines.on('close', () => process.exit());
await app.ready();
say('ready');
