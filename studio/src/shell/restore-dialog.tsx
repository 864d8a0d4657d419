import { type ReactNode, useState } from 'react';
import type { FileDiff, PlannedEffect, State, UndoPlan } from '../../../src/client/index.ts';
import { FileDiffs } from '../files/file-diffs.tsx';
import { StateChanges } from '../inspector/state-changes.tsx';
import { plural } from '../lib/format.ts';
import { brief } from '../lib/json.ts';
import { Dialog } from '../ui/dialog.tsx';
import { Time } from '../ui/time.tsx';

/** A restore that changes files on the disk, or whose later turns had effects in other systems. */
export interface RestoreSubject {
  /** The name of the turn, such as "turn 2". */
  readonly turn: string;
  /** The effects in other systems, if some can be undone or were. */
  readonly plan: UndoPlan | undefined;
  /** The files that it changes in the folder. */
  readonly files: readonly FileDiff[];
  readonly before: State | undefined;
  readonly after: State | undefined;
  /** Restores, with or without undoing, and with or without files. Resolves to what went wrong, if something did. */
  readonly restore: (how: {
    readonly undo: boolean;
    readonly force: boolean;
    readonly workspace: boolean;
  }) => Promise<string | undefined>;
}

const words: Readonly<Record<PlannedEffect['undo'], string>> = {
  possible: 'will be undone',
  impossible: 'stays',
  done: 'was undone, and is not done again',
  'needed by another branch': 'stays: another branch needs it',
};

/** Shows what a restore changes, here and in other systems, before anything happens. */
export function RestoreDialog({
  subject,
  onClose,
}: {
  readonly subject: RestoreSubject;
  readonly onClose: () => void;
}): ReactNode {
  const { turn, plan, files, before, after } = subject;
  const effects = plan?.effects ?? [];
  const [workspace, setWorkspace] = useState(true);
  const [force, setForce] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const shared = effects.filter(({ undo }) => undo === 'needed by another branch');
  const willUndo = ({ undo }: PlannedEffect): boolean =>
    undo === 'possible' || (force && undo === 'needed by another branch');
  const count = effects.filter(willUndo).length;
  const submit = async (undo: boolean): Promise<void> => {
    setBusy(true);
    const wrong = await subject.restore({ undo, force: undo && force, workspace });
    setBusy(false);
    if (wrong === undefined) onClose();
    else setFault(wrong);
  };
  return (
    <Dialog title={`Restore ${turn}?`} onClose={onClose} wide>
      <div className="restore">
        {effects.length > 0 && (
          <section aria-labelledby="restore-effects">
            <h3 id="restore-effects">Effects in other systems</h3>
            <ul className="effects">
              {effects.map((effect) => (
                <li key={`${effect.snapshotId} ${effect.at} ${effect.tool} ${brief(effect.input)}`}>
                  <div>
                    <strong>{effect.tool}</strong>{' '}
                    {effect.agent !== undefined && (
                      <span className="quiet">by {effect.agent} </span>
                    )}
                    <code>{brief(effect.input ?? null)}</code>{' '}
                    {effect.output !== undefined && (
                      <code className="quiet">→ {brief(effect.output)}</code>
                    )}
                  </div>
                  <div className="quiet">
                    <span className={willUndo(effect) ? 'effect-undone' : 'effect-stays'}>
                      {willUndo(effect) ? words.possible : words[effect.undo]}
                    </span>{' '}
                    · <Time iso={effect.at} />
                    {effect.reason !== undefined && ` · ${effect.reason}`}
                  </div>
                </li>
              ))}
            </ul>
            {shared.length > 0 && (
              <label className="restore-force">
                <input
                  type="checkbox"
                  checked={force}
                  onChange={(event) => setForce(event.target.checked)}
                />
                Also undo what another branch needs ({shared.length})
              </label>
            )}
          </section>
        )}
        {files.length > 0 && (
          <section aria-labelledby="restore-files">
            <h3 id="restore-files">Changes to {plural(files.length, 'file')} in the folder</h3>
            <p className="quiet">
              {workspace
                ? 'Changes that no snapshot has are saved first.'
                : 'The files stay as they are.'}
            </p>
            {workspace && <FileDiffs files={files} />}
            <label className="restore-force">
              <input
                type="checkbox"
                checked={workspace}
                onChange={(event) => setWorkspace(event.target.checked)}
              />
              Restore the files as well
            </label>
          </section>
        )}
        <section aria-labelledby="restore-changes">
          <h3 id="restore-changes">Conversation, state and artifacts</h3>
          <p className="quiet">Later turns stay in the timeline; you can restore them as well.</p>
          <StateChanges before={before} after={after} />
        </section>
        <p className="fault-text" role="alert">
          {fault}
        </p>
        <div className="buttons">
          {count > 0 && (
            <button
              type="button"
              className="button danger"
              disabled={isBusy}
              onClick={() => void submit(true)}
            >
              Undo {plural(count, 'effect')} and restore
            </button>
          )}
          <button
            type="button"
            className="button"
            disabled={isBusy}
            onClick={() => void submit(false)}
          >
            {count > 0 ? 'Restore without undoing' : 'Restore'}
          </button>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </div>
    </Dialog>
  );
}
