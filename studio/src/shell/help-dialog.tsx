import type { ReactNode } from 'react';
import { keyName, keyNames } from '../lib/keys.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, type MarkKind, markWords } from '../ui/mark.tsx';
import { commandNames } from './command-list.ts';

const keys: readonly (readonly [string, string])[] = [
  ['j  k', 'Move down and up in the timeline'],
  ['h  l', 'Move to the branch on the left or right'],
  named(commandNames.restore),
  named(commandNames.fork),
  named(commandNames.compare, '; shift-click compares any two'),
  named(commandNames.label),
  [keyNames.modK, 'Command palette: find and do anything'],
  named(commandNames.search),
  [keyNames.enter, `Send; ${keyNames.shiftEnter} for a new line`],
  [keyNames.modEnter, 'Send'],
  [keyNames.modShiftEnter, 'Start in the background'],
  [keyNames.escape, 'Back to now; stop the running turn'],
  [commandNames.help.key, 'This help'],
];

function named({ key, name }: { key: string; name: string }, more = ''): readonly [string, string] {
  return [keyName(key), `${name}${more}`];
}

const marks: readonly MarkKind[] = [
  'head',
  'done',
  'orphaned',
  'waiting',
  'stopped',
  'failed',
  'aborted',
  'pending',
  'expired',
  'step',
];

/** The keys, and what the marks in the timeline mean. */
export function HelpDialog({ onClose }: { readonly onClose: () => void }): ReactNode {
  return (
    <Dialog title="Keyboard shortcuts and marks" onClose={onClose} wide>
      <div className="help">
        <dl>
          {keys.map(([key, words]) => (
            <div key={key}>
              <dt>
                {key.split('  ').map((each) => (
                  <kbd key={each}>{each}</kbd>
                ))}
              </dt>
              <dd>{words}</dd>
            </div>
          ))}
        </dl>
        <dl>
          {marks.map((mark) => (
            <div key={mark}>
              <dt>
                <MarkIcon kind={mark} />
              </dt>
              <dd>{markWords[mark]}</dd>
            </div>
          ))}
          <div>
            <dt>
              <Icon name="flag" />
            </dt>
            <dd>labelled</dd>
          </div>
        </dl>
      </div>
    </Dialog>
  );
}
