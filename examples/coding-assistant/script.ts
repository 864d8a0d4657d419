import { type Message, type ModelRef, type ModelRequest, textOf } from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';

const call = (name: string, input: Readonly<Record<string, string>>): ScriptedReply => ({
  toolCalls: [{ name, input }],
});

const path = 'src/slug.ts';
const fix = {
  path,
  find: "title.toLowerCase().replaceAll(' ', '-')",
  replace: "title.toLowerCase().match(/[\\p{L}\\p{N}]+/gu)?.join('-') ?? 'untitled'",
};

/** The steps of “Make the tests pass”. Each is the reply to the result of the one before. */
const steps: readonly ScriptedReply[] = [
  call('load_skill', { name: 'fix-tests' }),
  call('shell', { command: 'node --test' }),
  call('read', { path }),
  call('edit', fix),
  call('shell', { command: 'node --test' }),
];

/** Plays a script over the sample project, so that the assistant works without a key. */
export function assistantScript(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [/tests/i, steps[0] as ScriptedReply],
        [
          /issue for (.+)/i,
          ([, what = 'this']) => call('open_issue', { title: `Support ${what}` }),
        ],
      ],
      afterTools: (request, [result]) => nextStep(request) ?? report(result),
      otherwise: 'Try “Make the tests pass”, and “Open an issue for accents”.',
    },
    { name: 'script' },
  );
}

/** The next step, if the user has asked for the tests and all steps so far went well. */
function nextStep({ messages }: ModelRequest): ScriptedReply | undefined {
  const at = messages.findLastIndex(({ role }) => role === 'user');
  const asked = messages[at];
  if (asked === undefined || !/tests/i.test(textOf(asked))) return undefined;
  const results = messages.slice(at).flatMap(({ content }: Message) => content);
  if (results.some(({ metadata }) => metadata?.error !== undefined)) return undefined;
  return steps[results.filter((part) => 'toolResponse' in part).length];
}

/** Says what the last tool returned. */
function report(result: unknown): string {
  if (typeof result !== 'object' || result === null) return `I have stopped: ${result}`;
  if ('issue' in result) return `I have opened issue ${result.issue}.`;
  if (!('exitCode' in result)) return JSON.stringify(result);
  return result.exitCode === 0
    ? `All tests pass now. ${path} takes the letters and digits of the title, and joins them with hyphens.`
    : `The tests still fail:\n${'output' in result ? result.output : 'no output'}`;
}
