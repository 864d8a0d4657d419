import { createInterface, type Interface } from 'node:readline';
import type { SnapshotRef } from 'waymark';
import type { Assistant } from './assistant.ts';
import { showChanges } from './show-changes.ts';

type Output = Awaited<ReturnType<Assistant['stream']>['output']>;

/** A chat in the terminal, until the input ends. */
export async function chatInTerminal(assistant: Assistant): Promise<void> {
  const lines = createInterface({ input: process.stdin, output: process.stdout, prompt: '> ' });
  let isOpen = true;
  lines.once('close', () => {
    isOpen = false;
  });
  const chat = assistant.chat();
  let last: SnapshotRef | undefined;
  while (isOpen) {
    lines.prompt();
    const line = await nextLine(lines);
    if (line === undefined || line === '/quit') break;
    // #region turn
    const turn = chat.stream(line);
    // A line that is typed while the turn runs is added to it.
    const steer = (text: string): void => void turn.steer(text).catch(console.error);
    lines.on('line', steer);
    for await (const text of turn.textStream) process.stdout.write(text);
    let output = await turn.output;
    lines.off('line', steer);
    // #endregion
    while (isOpen && output.interrupts.length > 0) output = await askUser(assistant, output, lines);
    console.log();
    if (output.error) console.error(output.error.message);
    else if (last) console.log(await showChanges(assistant, last, output));
    if (!output.error) last = output;
  }
  lines.close();
}

/** Shows the calls that wait, and continues the turn with the user's answer. */
async function askUser(assistant: Assistant, output: Output, lines: Interface): Promise<Output> {
  for (const { toolName, input } of output.interrupts) {
    console.log(`\n${toolName} ${JSON.stringify(input)}? (yes/no)`);
  }
  const isYes = (await nextLine(lines))?.startsWith('y');
  const next = await assistant.resume(output, (request) =>
    isYes ? request.approve() : request.decline('The user said no.'),
  );
  process.stdout.write(next.text);
  return next;
}

/** The next line, or `undefined` at the end of the input. */
function nextLine(lines: Interface): Promise<string | undefined> {
  return new Promise((resolve) => {
    const onLine = (line: string): void => {
      lines.off('close', onClose);
      resolve(line);
    };
    const onClose = (): void => {
      lines.off('line', onLine);
      resolve(undefined);
    };
    lines.once('line', onLine);
    lines.once('close', onClose);
  });
}
