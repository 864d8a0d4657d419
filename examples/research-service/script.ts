import { type ModelRef, textOf } from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';

// What a real model would have used for a call like these.
const usage = { inputTokens: 800, outputTokens: 60, totalTokens: 860 };
const ask = (message: string): ScriptedReply => ({
  toolCalls: [{ name: 'archive', input: { message } }],
  usage,
});

/** Plays a script, so that the service works without a key. “Everything …” searches until its budget is used up. */
export function researchScript(): ModelRef {
  return scriptedModel(
    {
      patterns: [[/(.+)/s, ([, question]) => ask(String(question))]],
      afterTools: ({ messages }, [result]) => {
        const asked = messages.findLast(({ role }) => role === 'user');
        const title = asked ? textOf(asked) : 'Report';
        if (result === 'saved') return { text: `The report about “${title}” is ready.`, usage };
        if (/^everything/i.test(title)) return ask(title);
        const input = { title, text: String(result) };
        return { toolCalls: [{ name: 'write_report', input }], usage };
      },
      otherwise: 'Ask me something.',
    },
    { name: 'script' },
  );
}
