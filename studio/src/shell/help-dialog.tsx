import type { ReactNode } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, type MarkKind, markWords } from '../ui/mark.tsx';

const keys: readonly (readonly [string, string])[] = [
  ['j  k', 'down and up through the timeline'],
  ['h  l', 'to the branch on the left or right'],
  ['g', 'go back to the selected snapshot'],
  ['b', 'branch there, into a new session'],
  ['c', 'compare it with now; shift-click compares any two'],
  ['f', 'flag it with a label'],
  ['/', 'search sessions'],
  ['⏎', 'send; ⇧⏎ for a new line'],
  ['⌘⏎', 'send'],
  ['⇧⌘⏎', 'send in the background'],
  ['esc', 'back to now; stop what runs'],
  ['?', 'this help'],
];

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
    <Dialog title="Keys and marks" onClose={onClose} wide>
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
