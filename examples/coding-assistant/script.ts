import { type ModelRef, textOf } from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';

const path = 'greet.js';
const call = (name: string, input: Readonly<Record<string, string>>): ScriptedReply => ({
  toolCalls: [{ name, input }],
});

/** Plays a script over the sample folder, so that the assistant works without a key. */
export function assistantScript(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [/save/i, call('save_file', { path })],
        // Also when it arrives while a turn runs.
        [/exclamation/i, call('edit_file', { path, find: ".'", replace: "!'" })],
        [/greeting/i, call('files_read_text_file', { path })],
      ],
      afterTools: ({ messages }, [result]) => {
        const asked = messages.findLast(({ role }) => role === 'user');
        const isRead = JSON.stringify(result).includes('greeting =');
        if (isRead && asked && /warmer/i.test(textOf(asked))) {
          return call('edit_file', { path, find: 'Hello', replace: 'Good morning' });
        }
        return said(result);
      },
      otherwise:
        'Try “Make the greeting warmer”, “End it with an exclamation mark”, and “Save it”.',
    },
    { name: 'script' },
  );
}

function said(result: unknown): string {
  if (typeof result !== 'object' || result === null) return String(result);
  if ('edited' in result) return `I have changed the draft of ${result.edited}.`;
  if ('saved' in result) return `Saved ${result.saved}.`;
  return JSON.stringify(result);
}
